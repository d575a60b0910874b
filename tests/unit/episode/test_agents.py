"""The agents that generate nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.episode.agents import Agent, AnswerAgent, NoopAgent, OracleAgent, ScriptAgent, observe
from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.conversation import ConversationAgent
from envsdk.errors import UsageError
from envsdk.sandboxes.base import ExecResult, SandboxSpec
from envsdk.spec.model import Budget
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task, text_task

EVERY = [NoopAgent(), OracleAgent(), ScriptAgent(b""), AnswerAgent("x"), ConversationAgent(ScriptedPolicy([]))]


@pytest.mark.parametrize("agent", EVERY, ids=lambda agent: type(agent).__name__)
def test_each_is_an_agent(agent: object) -> None:
    assert isinstance(agent, Agent)


def test_only_a_text_end_state_needs_no_box(tmp_path: Path) -> None:
    text = text_task(tmp_path / "text")
    shared = script_task(tmp_path / "shared", protocol="answer", mode="shared")
    shell = script_task(tmp_path / "shell")
    for agent in (NoopAgent(), AnswerAgent("x"), ConversationAgent(ScriptedPolicy([]))):
        assert [agent.needs_sandbox(task) for task in (text, shared, shell)] == [False, True, True]
    assert not OracleAgent().needs_sandbox(text)
    assert OracleAgent().needs_sandbox(shell)


def test_an_oracle_that_is_a_script_only_needs_its_box(tmp_path: Path) -> None:
    task = text_task(tmp_path)
    (tmp_path / "solution/answer.txt").unlink()
    assert OracleAgent().needs_sandbox(task)


async def test_a_task_without_oracle_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await OracleAgent().act(script_task(tmp_path, oracle=None), None, EpisodeClock(Budget()))
    assert caught.value.code == "no_oracle"


async def test_an_oracle_without_a_box_says_that_it_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await OracleAgent().act(script_task(tmp_path), None, EpisodeClock(Budget()))
    assert caught.value.code == "needs_sandbox"


async def test_an_answer_is_stored_as_given(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    end = await AnswerAgent("a\u2028b\n").act(text_task(tmp_path), box, EpisodeClock(Budget()))
    assert end.answer == await box.read("/app/answer.txt") == "a\u2028b\n".encode()
    await provider.close()


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (ExecResult(exit_code=0, stdout=b"a\n"), "a\n[exit code 0]"),
        (ExecResult(exit_code=2, stdout=b"a", stderr=b"b"), "ab\n[exit code 2]"),
        (ExecResult(exit_code=None, signal=9), "[killed by signal 9]"),
        (ExecResult(exit_code=None, signal=9, timed_out=True), "[the command was stopped at its time limit]"),
        (ExecResult(exit_code=0, stdout=b"ab", total_bytes=1002), "ab\n[... 1000 bytes left out ...]\n[exit code 0]"),
        (ExecResult(exit_code=0, stdout="é".encode()[:1]), "\ufffd\n[exit code 0]"),
    ],
)
def test_an_observation_is_the_output_and_how_the_command_ended(result: ExecResult, shown: str) -> None:
    assert observe(result) == shown
