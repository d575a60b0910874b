"""The metrics page names every metric that a step writes, and none that it does not."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fakes.episodes import make_group
from trainer.activity import Totals
from trainer.clock import PHASES, batch_timing
from trainer.dispatch import DispatchCounts
from trainer.probe import Reading
from trainer.step_report import step_row
from trainer.weights import Publication

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def written() -> set[str]:
    group = make_group()
    row = step_row(
        step=1,
        version=0,
        groups=[group],
        launched=[],
        learner={},
        timing=batch_timing([group], previous_handover=0, asked_at=0, taken_at=1, packed_at=1),
        activity=Totals(),
        publication=Publication(1, 0, 0, 0, (Reading("0", 1, 0.0, 0.0, 1),)),
        counts=DispatchCounts(),
    )
    return set(row)


def named() -> set[str]:
    cells = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} - {"batch/*", "launched/*"}
    spread = {f"{which}/{name[4:]}" for name in names if name.startswith(".../") for which in ("batch", "launched")}
    phases = {f"time/t2tb_{phase}_s" for phase in PHASES}
    plain = {name for name in names if not name.startswith(".../")} - {"time/t2tb_PHASE_s"}
    return plain | spread | phases


def test_the_page_and_the_row_agree() -> None:
    # How many episodes a mean is over needs no line of its own.
    assert written() - {"batch/episodes", "launched/episodes"} == named()
