"""``planted_reward``: a reward that lies there counts for nothing, and what then passes is not told as a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring.find import find_tasks
from envsdk.checks.engine import check_task
from envsdk.checks.report import CheckResult
from tests.fakes.sandbox import FakeProvider

AUTHORED = '''
from envsdk import ContainerSpec, Draw, Script, task


@task(verifier=Script("""#!/bin/sh
mkdir -p /logs/verifier
BODY
"""), container=ContainerSpec(), artifacts=["/app/out.txt"])
def boxed() -> Draw:
    return Draw(instruction="Write right to /app/out.txt.", oracle="echo right > /app/out.txt")
'''


async def asked(tmp_path: Path, provider: FakeProvider, body: str) -> CheckResult:
    (tmp_path / "planted_tasks.py").write_text(AUTHORED.replace("BODY", body))
    (task,) = find_tasks(tmp_path / "planted_tasks.py", tmp_path / "drawn")
    return (await check_task(task, provider, checks=["planted_reward"], fresh=True)).checks[0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("rm -f /logs/verifier/*; echo 0 > /logs/verifier/reward.txt", "reward 0"),
        ("echo 0 > /logs/verifier/reward.txt", "refused as conflicting_rewards"),
        ("rm -f /logs/verifier/*", "refused as missing_reward"),
    ],
)
async def test_what_passes_says_that_the_planted_reward_did_not_count(
    tmp_path: Path, provider: FakeProvider, body: str, why: str
) -> None:
    result = await asked(tmp_path, provider, body)
    assert (result.outcome, result.why) == ("pass", f"the planted reward did not count: {why}")


async def test_a_verifier_that_keeps_what_is_there_fails(tmp_path: Path, provider: FakeProvider) -> None:
    result = await asked(tmp_path, provider, "exit 0")
    assert (result.outcome, result.evidence["verdict"]) == ("fail", "reward 1")
