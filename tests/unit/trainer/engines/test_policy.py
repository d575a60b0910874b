"""Opening ``vllm:MODEL``: named before it is started, started once, and only when it is needed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pydantic
import pytest

from envsdk.errors import UsageError
from trainer.engines import policy
from trainer.model_folder import ORIGIN


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
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
    assert policy.open_policy(str(model)).id.lineage == "smollm2"


def test_a_model_that_is_not_there_and_an_option_that_is_none_are_refused(model: Path) -> None:
    with pytest.raises(UsageError):
        policy.open_policy(str(model / "nowhere"))
    with pytest.raises(pydantic.ValidationError):
        policy.open_policy(str(model), warmth=3)
