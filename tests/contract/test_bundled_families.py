"""The bundled families in real sandboxes: the oracle earns the full reward, doing nothing and wrong replies earn none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envsdk.authoring.find import registered_families
from envsdk.authoring.scaffold import scaffold
from envsdk.episode.agents import Agent, NoopAgent, OracleAgent, ScriptAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.verdict import EndState
from envsdk.verifying.verify import verify

pytestmark = pytest.mark.asyncio(loop_scope="module")
FAMILIES = registered_families()
EASIEST = [(name, FAMILIES[name].complete({})) for name in sorted(FAMILIES)]
HARDEST = [(name, {knob: values[-1] for knob, values in FAMILIES[name].levels.items()}) for name in sorted(FAMILIES)]


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


def draw(folder: Path, name: str, level: dict) -> Task:
    return FAMILIES[name].draw(seed=3, level=level, dest=folder / "task")


async def play(task: Task, agent: Agent, provider: SandboxProvider) -> tuple[str, float | None, str]:
    record: EpisodeRecord = await run_episode(task, agent, provider)
    return record.outcome.outcome_class, record.outcome.reward, record.evidence.error_code


@pytest.mark.parametrize(("name", "level"), EASIEST + HARDEST, ids=str)
async def test_the_oracle_passes_and_doing_nothing_fails(
    tmp_path: Path, provider: SandboxProvider, name: str, level: dict
) -> None:
    task = draw(tmp_path, name, level)
    assert await play(task, OracleAgent(), provider) == ("model_success", 1.0, "")
    assert await play(task, NoopAgent(), provider) == ("model_failure", 0.0, "")


@pytest.mark.parametrize("name", ["file-chores", "fix-function", "ledger-api"])
async def test_wrong_scripts_earn_nothing(tmp_path: Path, provider: SandboxProvider, name: str) -> None:
    task = draw(tmp_path, name, {})
    for script in sorted((task.root / "mutants" / "wrong").iterdir()):
        outcome = await play(task, ScriptAgent(script.read_bytes()), provider)
        assert outcome == ("model_failure", 0.0, ""), script.name


@pytest.mark.parametrize("name", ["upper-word", "count-letters", "sums"])
async def test_a_text_tasks_script_agrees_in_a_sandbox_without_envsdk(
    tmp_path: Path, provider: SandboxProvider, name: str
) -> None:
    task = draw(tmp_path, name, {})
    oracle = (task.root / "solution" / "answer.txt").read_bytes()
    right = await verify(task, EndState(answer=oracle), provider, in_sandbox=True)
    wrong = await verify(task, EndState(answer=b"no"), provider, in_sandbox=True)
    assert ((right.reward, right.code), (wrong.reward, wrong.code)) == ((1.0, ""), (0.0, ""))


@pytest.mark.parametrize(
    "code",
    [
        "print(open('/tests/cases.json').read())",
        "import os; os.kill(os.getppid(), 9)",
        "open('/logs/verifier/reward.txt', 'w').write('1')",
        "import os\nfor p in os.listdir('/proc'):\n    p.isdigit() and int(p) > 1 and os.kill(int(p), 9)",
    ],
)
async def test_a_repair_that_attacks_the_judge_earns_nothing(
    tmp_path: Path, provider: SandboxProvider, code: str
) -> None:
    task = draw(tmp_path, "fix-function", {})
    module = (task.root / "instruction.md").read_text().partition("/app/shop/")[2].partition(".py")[0]
    script = f"#!/bin/sh\ncat > /app/shop/{module}.py <<'END'\n{code}\nEND\n".encode()
    outcome, reward, _ = await play(task, ScriptAgent(script), provider)
    assert (outcome, reward) == ("model_failure", 0.0)


@pytest.mark.parametrize("kind", ["text", "state", "script"])
async def test_what_init_writes_holds(tmp_path: Path, provider: SandboxProvider, kind: str) -> None:
    task = scaffold(tmp_path / "mine", kind=kind)
    assert await play(task, OracleAgent(), provider) == ("model_success", 1.0, "")
    assert await play(task, NoopAgent(), provider) == ("model_failure", 0.0, "")
