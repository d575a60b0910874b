"""End states kept by content, and scored again."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.episode.agents import AnswerAgent, OracleAgent, ScriptAgent
from envsdk.episode.run import run_episode
from envsdk.errors import StoreError
from envsdk.verifying.rescore import rescore
from envsdk.verifying.store import CAP_BYTES, keep_end_state, kept_end_state
from envsdk.verifying.verdict import Artifacts, EndState
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task, text_task


def state_in(root: Path, text: str = "42") -> EndState:
    (root / "app").mkdir(parents=True)
    (root / "app/total.txt").write_text(text)
    (root / "app/link").symlink_to("total.txt")
    return EndState(answer=b"a\xff", artifacts=Artifacts(root, captured=("/app",), missing=("/out",), dropped=("/x",)))


def test_a_kept_state_comes_back_as_it_was(tmp_path: Path) -> None:
    digest = keep_end_state(state_in(tmp_path / "end"), tmp_path / "kept")
    state = kept_end_state(tmp_path / "kept", digest)
    assert state.answer == b"a\xff"
    assert state.artifacts is not None
    assert (state.artifacts.captured, state.artifacts.missing, state.artifacts.dropped) == (
        ("/app",),
        ("/out",),
        ("/x",),
    )
    assert state.artifacts.local("/app/link").read_text() == "42"


def test_equal_states_are_kept_once_and_different_ones_apart(tmp_path: Path) -> None:
    digests = [
        keep_end_state(state_in(tmp_path / "a", "1"), tmp_path / "kept"),
        keep_end_state(state_in(tmp_path / "b", "1"), tmp_path / "kept"),
        keep_end_state(state_in(tmp_path / "c", "2"), tmp_path / "kept"),
    ]
    assert digests[0] == digests[1] != digests[2]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_state_beyond_the_cap_is_not_kept_and_says_so_by_an_empty_name(tmp_path: Path) -> None:
    state = state_in(tmp_path / "end")
    with (tmp_path / "end/app/big").open("wb") as file:
        file.truncate(CAP_BYTES + 1)
    assert keep_end_state(state, tmp_path / "kept") == ""


def test_a_state_that_was_not_kept_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    for digest in ("", "0" * 64, "../end"):
        with pytest.raises(StoreError) as caught:
            kept_end_state(tmp_path, digest)
        assert caught.value.code == "no_end_state"


async def test_a_changed_verifier_changes_the_verdict_and_the_diff_shows_it(tmp_path: Path) -> None:
    provider = FakeProvider()
    states = tmp_path / "states"
    record = await run_episode(script_task(tmp_path / "a"), OracleAgent(), provider, keep=states)
    strict = script_task(tmp_path / "b", test="#!/bin/sh\necho 0.5 > /logs/verifier/reward.txt\n")
    again = await rescore(strict, record.model_dump(mode="json"), states, provider)
    assert again.verdict.reward == 0.5
    assert again.change is not None
    assert again.change["diff"].splitlines()[1:] == ["- model_success, reward 1.0", "+ model_failure, reward 0.5"]


async def test_the_same_verifier_changes_nothing(tmp_path: Path) -> None:
    states = tmp_path / "states"
    task = text_task(tmp_path / "t")
    for agent in (OracleAgent(), AnswerAgent("7")):
        record = await run_episode(task, agent, None, keep=states)
        again = await rescore(task, record.model_dump(mode="json"), states, None)
        assert again.change is None
        assert again.after == record.outcome.model_dump(mode="json")


async def test_how_the_episode_ended_stays_when_it_is_scored_again(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path / "a")
    slow = task.model_copy(
        update={"spec": task.spec.model_copy(update={"budget": task.spec.budget.model_copy(update={"episode_s": 0.3})})}
    )
    record = await run_episode(slow, ScriptAgent(b"#!/bin/sh\nsleep 9\n"), provider, keep=tmp_path / "states")
    again = await rescore(task, record.model_dump(mode="json"), tmp_path / "states", provider)
    assert again.after["cause"] == "episode_timeout"
