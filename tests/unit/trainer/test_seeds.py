"""One seed for a run: the same seed gives every member's turns the same random numbers, and no two members the same."""

from __future__ import annotations

import itertools
from pathlib import Path

import platformdirs
import pytest

from tests.fakes.episodes import make_task
from tests.fakes.runs import install, parity_registry
from trainer.config import TrainConfig
from trainer.group import Draw, Member
from trainer.loop import train
from trainer.run_dir import RunDir


def member(order: int = 0, index: int = 0, attempt: int = 0, *, group_id: str = "g") -> Member:
    return Member(Draw(group_id, order, make_task(), 8, 0, 0.0), index, attempt)


def test_members_have_seeds_of_their_own_and_a_run_of_another_name_has_the_same() -> None:
    seeds = {member(o, i, a).seed(1) for o in range(5) for i in range(5) for a in range(3)}
    assert len(seeds) == 75
    assert member(3, 2, 1).seed(1) == member(3, 2, 1, group_id="another run").seed(1)
    assert member().seed(1) != member().seed(2)


def test_the_turns_of_one_member_meet_no_others() -> None:
    # A session adds one for every turn.
    seeds = sorted(member(o, i).seed(0) for o in range(50) for i in range(8))
    assert min(b - a for a, b in itertools.pairwise(seeds)) > 1000


async def test_a_runs_requests_carry_the_seeds_of_their_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_args, **_kwargs: tmp_path / "user")
    ends = install(monkeypatch, tmp_path)
    url = parity_registry(tmp_path)
    config = TrainConfig(query="family:parity", registry=url, steps=1, groups_per_step=1, group_size=2, seed=5)
    await train(config, RunDir.create(tmp_path / "r", config))
    asked = {r.request_id: r.seed for r in ends.engine.requests if not r.request_id.startswith(("probe", "score"))}
    assert len(asked) >= 2
    known = {member(o, i, a).seed(5) for o in range(9) for i in range(2) for a in range(3)}
    assert set(asked.values()) <= known
    assert len(set(asked.values())) == len(asked)
