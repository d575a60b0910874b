"""Opening ``vllm:MODEL``: named before it is started, started once, and only when it is needed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pydantic
import pytest

from envsdk.errors import EngineError, UsageError
from tests.fakes.engine import FakeEngine
from tests.fakes.models import write_model
from trainer.engines import policy
from trainer.engines.options import EngineOptions
from trainer.model_folder import ORIGIN, revision
from trainer.models import NAMED


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path)
    return tmp_path


class Started:
    """A policy that counts its starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.starts = 0
        self.closed = False

        async def start_policy(model_dir, **_options):
            self.starts += 1
            await asyncio.sleep(0)
            return self

        monkeypatch.setattr(policy, "start_policy", start_policy)

    async def begin(self, *, session_id, group_id="", seed=None):
        return session_id

    async def close(self) -> None:
        self.closed = True


async def test_many_first_sessions_start_one_engine(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch)
    opened = policy.open_policy(str(model))
    assert started.starts == 0
    assert await asyncio.gather(*(opened.begin(session_id=str(n)) for n in range(5))) == list("01234")
    assert started.starts == 1
    await opened.close()
    assert started.closed


def test_a_model_that_is_made_first_is_told_of(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(progress: policy.Progress) -> Path:
        progress("converting the model")
        return model

    monkeypatch.setitem(NAMED, "tiny", make)  # type: ignore[misc]
    policy.open_policy("tiny")
    assert capsys.readouterr().err == "converting the model\n"


async def test_closing_what_was_never_needed_starts_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch)
    await policy.open_policy(str(model)).close()
    assert started.starts == 0


def test_it_says_who_it_is_before_it_is_started(model: Path) -> None:
    named = policy.open_policy(str(model), temperature=0.5, dtype="float32").id
    assert (named.model, named.lineage, named.precision) == (model.name, model.name, "float32")
    assert named.sampling == {"temperature": 0.5}
    assert named.engine.startswith("vllm")


def test_a_trained_model_keeps_its_lineage(model: Path) -> None:
    (model / ORIGIN).write_text('{"lineage": "smollm2", "weight_version": 9}')
    named = policy.open_policy(str(model)).id
    assert (named.lineage, named.model) == ("smollm2", "smollm2")
    assert named.revision == revision(model)


def test_a_model_that_is_not_there_and_an_option_that_is_none_are_refused(model: Path) -> None:
    with pytest.raises(UsageError):
        policy.open_policy(str(model / "nowhere"))
    with pytest.raises(pydantic.ValidationError):
        policy.open_policy(str(model), warmth=3)


class Starts:
    """Starts fake engines, or fails at one; remembers how each was asked for."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.engines: list[FakeEngine] = []
        self.asked: list[tuple[str, str, tuple[int, ...]]] = []
        self._fails_at = fails_at

    async def __call__(self, model_dir, options, *, name, version, gpus):
        if len(self.engines) == self._fails_at:
            raise EngineError("no memory", code="engine_start", where=name)
        self.asked.append((name, options.threads, gpus))
        self.engines.append(FakeEngine(name, version=version))
        return self.engines[-1]


async def test_as_many_replicas_start_as_are_asked_for_each_with_its_name_its_cpus_and_its_gpus(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    (model / ORIGIN).write_text('{"lineage": "smollm2", "weight_version": 9}')
    starts = Starts()
    replicas = await policy.start_replicas(model, EngineOptions(replicas=2), gpus=((1,), (2,)), start=starts)
    assert starts.asked == [("0", "0", (1,)), ("1", "1", (2,))]
    assert [replica.version for replica in replicas] == [9, 9]


async def test_one_replica_alone_is_not_told_where(model: Path) -> None:
    starts = Starts()
    await policy.start_replicas(model, EngineOptions(threads="3"), start=starts)
    assert starts.asked == [("0", "3", ())]


async def test_where_one_does_not_start_those_before_it_are_closed(model: Path) -> None:
    starts = Starts(fails_at=2)
    with pytest.raises(EngineError, match="no memory"):
        await policy.start_replicas(model, EngineOptions(replicas=3), start=starts)
    assert [engine.closed for engine in starts.engines] == [True, True]
