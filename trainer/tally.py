"""How much of a batch a bound, a cap or a rule touched, as shares: of all of it, and of mismatch and lag apart.

Each share is over the units that its bound is on, tokens or whole sequences, and is added up over micro-batches. A
token of the learner's own version differs from the engine's by numerics alone (*mismatch*), any other also by *lag*; a
sequence counts as lagging where any of its tokens does. A part without a unit has no share, never 0.
"""

from __future__ import annotations

from collections import Counter

from torch import Tensor

from trainer.loss.term import Unit, units_in
from trainer.token_table import TokenTable

PARTS = ("", "mismatch/", "lag/")


class Tally:
    """Counts of one batch."""

    def __init__(self) -> None:
        self._hits: Counter[tuple[str, str]] = Counter()
        self._units: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, hit_BT: Tensor, table: TokenTable, *, unit: Unit = "token") -> None:
        """``hit_BT``: [B, T] what was touched of a micro-batch's ``table``."""
        lags_BT = table.lag_BT > 0
        if unit == "sequence":
            lags_BT = (lags_BT & table.mask_BT).any(dim=-1, keepdim=True).expand_as(lags_BT)
        chosen = (table.mask_BT, table.mask_BT & ~lags_BT, table.mask_BT & lags_BT)
        for part, chosen_BT in zip(PARTS, chosen, strict=True):
            self._hits[part, name] += units_in(hit_BT & chosen_BT, unit)
            self._units[part, name] += units_in(chosen_BT, unit)

    def shares(self) -> dict[str, float]:
        """``frac_NAME``, ``mismatch/frac_NAME`` and ``lag/frac_NAME`` of everything that was added."""
        return {f"{part}frac_{name}": self._hits[part, name] / n for (part, name), n in self._units.items() if n}
