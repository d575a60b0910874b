"""A policy acting by the protocols answer, command and shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsdk.episode.agents import AgentEnd
from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.conversation import ConversationAgent, command_of, opening
from envsdk.errors import EngineError
from envsdk.policy import InferenceError, Reply
from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import AgentSpec, Budget, Example, Task
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task, text_task


async def act(task: Task, policy: ScriptedPolicy, *, box: bool = True) -> tuple[AgentEnd, FakeProvider]:
    provider = FakeProvider()
    sandbox = await provider.acquire(SandboxSpec(image="fake")) if box else None
    clock = EpisodeClock(task.spec.budget)
    with clock.acting():
        end = await ConversationAgent(policy).act(task, sandbox, clock)
    return end, provider


def shell(tmp_path: Path, **budget: Any) -> Task:
    return script_task(tmp_path, budget=Budget(**{"step_s": 5.0, "episode_s": 10.0, **budget}))


async def test_answer_is_one_reply_stored_at_the_first_artifact(tmp_path: Path) -> None:
    task = text_task(tmp_path, artifacts=("/app/reply.txt",))
    end, provider = await act(task, ScriptedPolicy([" five\n"]))
    assert (end.ended_by, end.answer) == ("final_answer", b" five\n")
    assert await provider.handed_out[0].read("/app/reply.txt") == b" five\n"
    await provider.close()


async def test_an_answer_cut_at_its_budget_is_still_the_answer(tmp_path: Path) -> None:
    end, _ = await act(text_task(tmp_path), ScriptedPolicy([Reply(text="fi", finish="length")]), box=False)
    assert (end.ended_by, end.answer) == ("token_limit", b"fi")


async def test_command_runs_one_reply_and_its_stdout_is_the_answer(tmp_path: Path) -> None:
    task = text_task(tmp_path, protocol="command")
    end, provider = await act(task, ScriptedPolicy(["```sh\necho 5; echo no >&2\n```"]))
    assert (end.ended_by, end.answer) == ("final_answer", b"5\n")
    assert await provider.handed_out[0].read("/app/answer.txt") == b"5\n"
    assert len(end.turns) == 1
    await provider.close()


async def test_an_artifact_that_the_command_itself_left_is_kept(tmp_path: Path) -> None:
    task = text_task(tmp_path, protocol="command", artifacts=("/app/out.txt",))
    _end, provider = await act(task, ScriptedPolicy(["echo mine > /app/out.txt; echo said"]))
    assert await provider.handed_out[0].read("/app/out.txt") == b"mine\n"
    await provider.close()


async def test_a_place_for_the_answer_that_the_command_barred_is_its_own_end_state(tmp_path: Path) -> None:
    task = text_task(tmp_path, protocol="command")
    end, provider = await act(task, ScriptedPolicy(["mkdir -p /app/answer.txt; echo said"]))
    assert (end.ended_by, end.answer) == ("final_answer", b"said\n")
    await provider.close()


async def test_shell_returns_output_and_exit_code_until_the_word_done(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["echo hi; exit 3", "Done."])
    end, provider = await act(shell(tmp_path), policy)
    assert end.ended_by == "final_answer"
    assert policy.heard[1][0].content == "hi\n[exit code 3]"
    assert [turn.exit_code for turn in end.turns] == [3, None]
    assert policy.open_sessions == 0
    await provider.close()


async def test_only_what_is_new_is_handed_to_the_session(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["true", "true", "done"])
    _, provider = await act(shell(tmp_path), policy)
    assert [len(messages) for messages in policy.heard] == [1, 1, 1]
    await provider.close()


async def test_long_output_is_capped_and_says_what_is_missing(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["head -c 100000 /dev/zero | tr '\\0' a", "done"])
    _, provider = await act(shell(tmp_path), policy)
    observation = policy.heard[1][0].content
    assert len(observation) < 2400
    assert "97952 bytes left out" in observation
    await provider.close()


async def test_output_that_is_no_text_is_decoded_with_replacement(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["printf '\\377ok'", "done"])
    _, provider = await act(shell(tmp_path), policy)
    assert policy.heard[1][0].content.startswith("\ufffdok")
    await provider.close()


async def test_a_shell_that_kills_itself_is_told_and_goes_on(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["kill -9 $$", "echo still", "done"])
    end, provider = await act(shell(tmp_path), policy)
    assert end.ended_by == "final_answer"
    assert "killed by signal 9" in policy.heard[1][0].content
    assert "still" in policy.heard[2][0].content
    await provider.close()


@pytest.mark.parametrize(
    ("replies", "budget", "ended_by"),
    [
        (["true"] * 9, {"turns": 3}, "turn_limit"),
        ([Reply(text="true", finish="stop", generated_tokens=60)] * 9, {"episode_tokens": 100}, "token_limit"),
        (["sleep 60"], {"step_s": 0.2}, "step_deadline"),
        (["sleep 60"], {"step_s": 50.0, "episode_s": 0.3}, "episode_deadline"),
        (["", "", ""], {}, "inference_reply"),
        (["true", Reply(text="", finish="context_full")], {}, "inference_reply"),
        ([InferenceError("x", inference={"status": 503})], {}, "inference_reply"),
        ([InferenceError("x", inference={"replica_healthy": False})], {}, "exception"),
        ([EngineError("x")], {}, "exception"),
    ],
)
async def test_every_way_to_end_is_named(
    tmp_path: Path, replies: list[Any], budget: dict[str, Any], ended_by: str
) -> None:
    end, provider = await act(shell(tmp_path, **budget), ScriptedPolicy(replies))
    assert end.ended_by == ended_by
    await provider.close()


async def test_one_command_between_empty_turns_starts_the_count_anew(tmp_path: Path) -> None:
    end, provider = await act(shell(tmp_path), ScriptedPolicy(["", "", "true", "", "done"]))
    assert end.ended_by == "final_answer"
    await provider.close()


async def test_the_models_time_and_the_tools_are_kept_apart(tmp_path: Path) -> None:
    task = shell(tmp_path)
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    clock = EpisodeClock(task.spec.budget)
    reply = Reply(text="sleep 0.3", finish="stop", queue_s=100.0, decode_s=0.1)
    with clock.acting():
        await ConversationAgent(ScriptedPolicy([0.2, reply, "done"])).act(task, box, clock)
    held = clock.facts()["held_s"]
    assert held["tool"] >= 0.3
    assert held["inference"] >= 0.2  # the whole wait, and never more than it, where the engine says that it queued
    assert held["inference"] < 50
    await provider.close()


def test_the_opening_is_system_examples_instruction(tmp_path: Path) -> None:
    task = text_task(tmp_path)
    agent = AgentSpec(protocol="answer", system="Be brief.", examples=(Example(user="1+1?", assistant="2"),))
    shown = opening(task.model_copy(update={"spec": task.spec.model_copy(update={"agent": agent})}))
    assert [message.role for message in shown] == ["system", "user", "assistant", "user"]
    assert shown[-1].content == "What is 2+3?"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (" ls \n", "ls"),
        ("```bash\nls\npwd\n```", "ls\npwd"),
        ("```\nls\n```\n", "ls"),
        ("Run this:\n```\nls\n```", "Run this:\n```\nls\n```"),
        ("", ""),
    ],
)
def test_a_command_is_the_reply_or_the_one_fence_it_consists_of(text: str, command: str) -> None:
    assert command_of(text) == command
