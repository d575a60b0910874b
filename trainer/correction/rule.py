"""Correction rules by name.

A new rule is one function of a `Drift` in a file of its own family, one line here, and its name and options in
`trainer.learner_config.CorrectionConfig`, which loads no torch and therefore cannot ask this table.
"""

from __future__ import annotations

from collections.abc import Callable

from trainer.correction.masked import seq_mis, token_mis
from trainer.correction.rejection import geo_reject, k2_seq_max, k2_seq_mean, k2_token, veto
from trainer.correction.result import Correction
from trainer.correction.truncated import seq_tis, token_tis

DRIFT_RULES: dict[str, Callable[..., Correction]] = {
    "token_tis": token_tis,
    "seq_tis": seq_tis,
    "token_mis": token_mis,
    "seq_mis": seq_mis,
    "geo_reject": geo_reject,
    "geo_reject_token_tis": geo_reject,
    "veto": veto,
    "k2_token": k2_token,
    "k2_seq_mean": k2_seq_mean,
    "k2_seq_max": k2_seq_max,
}
