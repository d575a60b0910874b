"""The metrics page names every metric that a step writes, and none that it does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.fakes.engine import FakeEngine, trainer_scores
from tests.fakes.episode_records import make_record, tiny_llama, updated
from tests.fakes.episodes import make_group
from trainer.activity import Totals
from trainer.batch import Batch, build_batch
from trainer.clock import BUSY, PHASES, batch_timing
from trainer.dispatch import DispatchCounts
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.probe import Probe
from trainer.step_report import step_row
from trainer.weights import Publication

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
PARTS = ("all", "mismatch", "lag")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "tis"},
    {"loss": "decoupled"},
    {"anchor": "recomputed", "correction": {"rule": "token_tis"}},
)


def a_batch() -> Batch:
    """Tokens of both ages, and an episode that is left out."""
    records = [make_record(reward=float(i % 2), own=[4 + i, 5], index=i, version=i % 2) for i in range(4)]
    lost = make_record(reward=None, in_gradient=False, in_baseline=False, cause="host_lost", index=4)
    return build_batch([[*records, lost]], trainer_version=1)


def learned() -> dict[str, float]:
    """What the learner says under any settings."""
    row: dict[str, float] = {}
    for settings in SETTINGS:
        config = LearnerConfig.model_validate({"precision": "fp32", **settings})
        row |= updated(Learner(None, config, model=tiny_llama()), a_batch())
    return row


async def written() -> set[str]:
    group = make_group()
    reading = await Probe([(5, 6, 7, 8)], lambda sequences: trainer_scores(1, sequences)).read(FakeEngine())
    row = step_row(
        step=1,
        version=0,
        groups=[group],
        launched=[],
        learner=learned(),
        timing=batch_timing([group], previous_handover=0, asked_at=0, taken_at=1, packed_at=1),
        activity=Totals(),
        publication=Publication(1, 0, 0, 0, (reading,)),
        counts=DispatchCounts(),
    )
    return set(row)


def named() -> set[str]:
    cells = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} - {"batch/*", "launched/*"}
    spread = {f"{which}/{name[4:]}" for name in names if name.startswith(".../") for which in ("batch", "launched")}
    spread |= {name.replace("PART", part) for name in names if "/PART/" in name for part in PARTS}
    # Shares of the update's table stand again for either part.
    shares = {name.removeprefix("learner/") for name in names if name.startswith("learner/frac_")} - {"frac_lag_masked"}
    spread |= {f"learner/{part}/{share}" for share in shares for part in PARTS[1:]}
    phases = {f"time/t2tb_{phase}_s" for phase in PHASES} | {f"time/straggler_{phase}_s" for phase in BUSY}
    plain = {name for name in names if not name.startswith(".../") and "/PART/" not in name}
    return (plain - {"time/t2tb_PHASE_s", "time/straggler_PHASE_s", "learner/excluded/CAUSE"}) | spread | phases


async def test_the_page_and_the_row_agree() -> None:
    # How many episodes a mean is over needs no line of its own; causes are the outcome table's.
    unnamed = {"batch/episodes", "launched/episodes", "learner/excluded/host_lost"}
    assert await written() - unnamed == named()
