"""Carry out a plan up to the point of publishing: draw, check and measure replacements, and store the proposal."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from envsdk.authoring.families import Family
from envsdk.checks.report import CheckReport
from envsdk.errors import EnvsdkError
from envsdk.spec.model import Task
from registry.calibration.campaign import Measured
from registry.db import Item, Proposal
from registry.local import LocalRegistry
from registry.refresh.begun import begun, without
from registry.refresh.levels import BAND
from registry.refresh.proposal import Plan, Planned, plan_draws

CheckTask = Callable[[Task], Awaitable[CheckReport]]
MeasureTasks = Callable[[list[Task]], Awaitable[list[Measured]]]
_ROUNDS = 3
_REFUSED = ("saturated", "too_hard")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A drawn task that passed its checks; ``measured`` is `None` where no policy was at hand."""

    item_id: int
    slug: str
    task_digest: str
    verifier_digest: str
    planned: Planned
    measured: Measured | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A draw that will not do.

    ``why``: a code of `envsdk`, ``check_fail``, the class that it measured as, ``below_the_band`` or
    ``above_the_band``.
    """

    family: str
    level: dict[str, Any]
    slug: str
    why: str


async def find_replacements(
    registry: LocalRegistry,
    plan: Plan,
    *,
    families: Mapping[str, Family],
    folder: Path,
    check: CheckTask,
    measure: MeasureTasks | None = None,
    heard: Callable[[int, int], None] = lambda _found, _wanted: None,
) -> tuple[list[Replacement], list[Refused]]:
    """Draw what the plan asks for; a draw that fails its checks or measures outside the band is drawn again, twice.

    Each time at the levels that the outcomes by then speak for: what came out too easy or too hard is learned from.
    Draws that an interrupted refresh of the same revision began to measure are taken up first.
    """
    found: list[Replacement] = []
    refused: list[Refused] = []
    open_slots = list(plan.draw)
    heard(0, len(open_slots))
    for number in range(_ROUNDS):
        if not open_slots:
            break
        if number > 0:
            open_slots = await asyncio.to_thread(_planned_again, registry, plan, open_slots, families)
        checked = await asyncio.to_thread(begun, registry, plan, folder) if number == 0 else []
        drawn, failed = _draw(registry, without(open_slots, [slot for slot, _ in checked]), families, folder)
        refused += failed
        for slot, task in drawn:
            report = await check(task)
            await asyncio.to_thread(registry.push, [task], [report])
            if report.verdict == "pass" and report.complete:
                checked.append((slot, task))
            else:
                refused.append(Refused(slot.family, slot.level, task.slug, f"check_{report.verdict}"))
        measured = {m.task_digest: m for m in await measure([task for _, task in checked])} if measure else {}
        with registry.database.reading() as session:
            for slot, task in checked:
                result = measured.get(task.digests.task)
                if result is not None and (why := _unfit(result)):
                    refused.append(Refused(slot.family, slot.level, task.slug, why))
                    continue
                found.append(_replacement(session, slot, task, result))
                open_slots.remove(slot)
        heard(len(found), len(plan.draw))
    return found, refused


def _unfit(measured: Measured) -> str:
    """Why a measured draw will not do: its class, or an interval that lies outside the band; empty where it will."""
    if measured.verdict in _REFUSED:
        return measured.verdict
    if measured.high < BAND[0]:
        return "below_the_band"
    return "above_the_band" if measured.low > BAND[1] else ""


def _planned_again(
    registry: LocalRegistry, plan: Plan, slots: Sequence[Planned], families: Mapping[str, Family]
) -> list[Planned]:
    """As many draws of each family as ``slots`` holds, planned with what is known by now."""
    wanted = Counter(slot.family for slot in slots)
    with registry.database.reading() as session:
        return [
            slot
            for name, count in sorted(wanted.items())
            for slot in plan_draws(session, families[name], count, plan.lineage_id)
        ]


def _draw(
    registry: LocalRegistry, slots: list[Planned], families: Mapping[str, Family], folder: Path
) -> tuple[list[tuple[Planned, Task]], list[Refused]]:
    """One task for each slot, with seeds that the registry has not seen in that family."""
    drawn: list[tuple[Planned, Task]] = []
    refused: list[Refused] = []
    with registry.database.reading() as session:
        seeds = {name: _next_seed(session, name) for name in sorted({slot.family for slot in slots})}
    for slot in slots:
        seed = seeds[slot.family]
        seeds[slot.family] += 1
        place = folder / f"{slot.family}-{seed}-{len(drawn)}-{time.monotonic_ns()}"
        try:
            drawn.append((slot, families[slot.family].draw(seed=seed, level=slot.level, dest=place)))
        except EnvsdkError as error:
            refused.append(Refused(slot.family, slot.level, "", error.code))
    return drawn, refused


def _next_seed(session: Session, family: str) -> int:
    seeds = [
        spec["seed"]
        for spec in session.scalars(select(Item.spec).where(Item.family == family))
        if spec.get("seed") is not None
    ]
    return max(seeds, default=-1) + 1


def _replacement(session: Session, slot: Planned, task: Task, measured: Measured | None) -> Replacement:
    item = session.scalar(
        select(Item.id).where(Item.task_digest == task.digests.task, Item.verifier_digest == task.digests.verifier)
    )
    assert item is not None, "it was pushed above"
    return Replacement(item, task.slug, task.digests.task, task.digests.verifier, slot, measured)


def proposal_body(
    plan: Plan,
    replacements: Sequence[Replacement],
    refused: Sequence[Refused],
    *,
    spent: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The diff with its reasons, as it is stored and shown; ``spent`` says what measuring took."""
    return {
        "set": plan.set_name,
        "revision": plan.revision,
        "policy": plan.lineage,
        "retire": [asdict(one) for one in plan.retire],
        "add": [asdict(one) for one in replacements],
        "not_replaced": [asdict(one) for one in plan.not_planned],
        "refused": [asdict(one) for one in refused],
        "kept": list(plan.kept),
        "size_before": len(plan.kept) + len(plan.retire),
        "size_after": len(plan.kept) + len(replacements),
        "spent": dict(spent or {}),
    }


def store_proposal(session: Session, plan: Plan, body: Mapping[str, Any]) -> Proposal:
    """Keep a proposal until it is published or dismissed."""
    proposal = Proposal(
        set_id=plan.set_id,
        parent_id=plan.revision_id,
        lineage_id=plan.lineage_id,
        body=dict(body),
        created_at=time.time(),
        revision_id=None,
        decided_at=None,
    )
    session.add(proposal)
    session.flush()
    return proposal
