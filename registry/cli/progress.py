"""How measuring goes, in one line on standard error: the engine's start, the round under way, episodes, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.calibration.campaign import Campaign

_SAY_EVERY_S = 2.0


def teller(heard: Callable[[Campaign], None] = lambda _: None) -> Callable[[Campaign], None]:
    """Says on standard error how measuring goes, every two seconds at most; ``heard`` hears each look."""
    last_said = -_SAY_EVERY_S

    def tell(campaign: Campaign) -> None:
        nonlocal last_said
        heard(campaign)
        now = time.monotonic()
        if now - last_said >= _SAY_EVERY_S or len(campaign.measured) == campaign.tasks:
            last_said = now
            print(line(campaign), file=sys.stderr)

    return tell


def line(campaign: Campaign) -> str:
    """Where a campaign stands at this moment."""
    at = campaign.progress()
    if not at.episodes and not campaign.ready():
        return f"the policy's engine is starting, {at.elapsed_s:.0f} s so far; {at.tasks} tasks wait for it"
    lost = f" ({campaign.ungraded} without a grade)" if campaign.ungraded else ""
    left = "" if at.eta_s is None else f", about {at.eta_s:.0f} s left"
    return f"{at.done} of {at.tasks} tasks, {_round(campaign)}{at.episodes} episodes{lost}, {at.elapsed_s:.0f} s{left}"


def _round(campaign: Campaign) -> str:
    if not campaign.looking:
        return ""
    look = f"look {campaign.round + 1}" if campaign.round else "first look"
    return f"{look} at {campaign.looking} under way, "
