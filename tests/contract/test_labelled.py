"""The labelled verifiers in real boxes: bad ones caught by the check named first, good ones accused by none.

``benchmarks/verifier_recall.py`` asks every check of every task. Here, to end in minutes, a bad one is asked the check
named first alone, and of each group's good ones the first is asked everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from envsdk.checks.engine import check_task
from envsdk.checks.shared import Shared
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from tests.labelled.catalogue import CASES
from tests.labelled.mini import Labelled, write

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

GROUPS = sorted({case.id.removeprefix("good-").split("-")[0] for case in CASES})
AT_ONCE = 2
# A limit on time is seen against an idle run. Where the tests' own machine has none, the verifier is asked again.
TRIES = {"load": 3}


@pytest.fixture
async def provider() -> AsyncIterator[SandboxProvider]:
    opened = open_provider("bubblewrap")
    yield opened
    await opened.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", GROUPS)
async def test_every_label_is_what_the_checks_say(tmp_path: Path, provider: SandboxProvider, group: str) -> None:
    free, shared = asyncio.Semaphore(AT_ONCE), Shared()

    async def wrong(case: Labelled) -> str:
        task, asked = load_task(write(case, tmp_path)), None if case.is_good else case.caught_by[:1]
        for _ in range(1 if case.is_good else TRIES.get(group, 1)):
            async with free:
                report = await check_task(task, provider, checks=asked, fresh=True, shared=shared)
            failed = {row.check: row.why for row in report.checks if row.outcome in {"fail", "error"}}
            if bool(failed) != case.is_good:
                return ""
        told = failed or [(row.check, row.outcome, row.why, row.evidence.get("runs")) for row in report.checks]
        return f"{case.id}: wanted {case.caught_by}, {told}; {case.why}"

    members = [case for case in CASES if case.id.removeprefix("good-").split("-")[0] == group]
    chosen = [case for case in members if not case.is_good] + [case for case in members if case.is_good][:1]
    assert [said for said in await asyncio.gather(*map(wrong, chosen)) if said] == []


def test_good_and_bad_are_both_there_in_number() -> None:
    assert sum(case.is_good for case in CASES) >= 40
    assert sum(not case.is_good for case in CASES) >= 120
    assert len({case.id for case in CASES}) == len(CASES)
