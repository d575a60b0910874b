"""Which GPU does what: nobody shares where there is room, everybody has a share where there is not, and too few is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import PrerequisiteError
from trainer import placement
from trainer.placement import Placement, place


@pytest.mark.parametrize(
    ("gpus", "learner", "replicas", "per_replica", "placed", "share"),
    [
        (0, "auto", 1, 1, Placement("cpu", ((),)), None),
        (0, "cpu", 3, 1, Placement("cpu", ((), (), ())), None),
        (1, "auto", 1, 1, Placement("cuda:0", ((0,),)), 0.45),
        (1, "cuda", 2, 1, Placement("cuda:0", ((0,), (0,))), 0.225),
        (1, "cpu", 1, 1, Placement("cpu", ((0,),)), None),
        (1, None, 1, 1, Placement(None, ((0,),)), None),
        (1, None, 2, 1, Placement(None, ((0,), (0,))), 0.45),
        (2, "auto", 1, 1, Placement("cuda:0", ((1,),)), None),
        (2, "cuda:1", 1, 1, Placement("cuda:1", ((0,),)), None),
        (4, "auto", 3, 1, Placement("cuda:0", ((1,), (2,), (3,))), None),
        (4, "cuda:2", 1, 2, Placement("cuda:2", ((0, 1),)), None),
        (4, "cpu", 2, 2, Placement("cpu", ((0, 1), (2, 3))), None),
        (8, None, 2, 4, Placement(None, ((0, 1, 2, 3), (4, 5, 6, 7))), None),
    ],
)
def test_where_everything_goes(
    gpus: int, learner: str | None, replicas: int, per_replica: int, placed: Placement, share: float | None
) -> None:
    found = place(gpus, learner=learner, replicas=replicas, per_replica=per_replica)
    assert found == placed
    assert found.gpu_share == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("gpus", "learner", "replicas", "per_replica", "code"),
    [
        (0, "cuda", 1, 1, "no_such_gpu"),
        (2, "cuda:2", 1, 1, "no_such_gpu"),
        (0, "auto", 1, 2, "too_few_gpus"),
        (2, "auto", 2, 1, "too_few_gpus"),
        (1, "auto", 1, 2, "too_few_gpus"),
        (3, "auto", 1, 3, "too_few_gpus"),
    ],
)
def test_what_is_not_there_is_said(gpus: int, learner: str, replicas: int, per_replica: int, code: str) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        place(gpus, learner=learner, replicas=replicas, per_replica=per_replica)
    assert caught.value.code == code


@given(st.integers(2, 16), st.integers(1, 8), st.integers(1, 4), st.sampled_from(["auto", "cpu", "cuda:1", None]))
def test_where_there_are_several_nobody_shares(gpus: int, replicas: int, per_replica: int, learner: str | None) -> None:
    try:
        found = place(gpus, learner=learner, replicas=replicas, per_replica=per_replica)
    except PrerequisiteError:
        assert replicas * per_replica > gpus - (learner in {"auto", "cuda:1"})
        return
    used = [gpu for own in found.replicas for gpu in own]
    assert len(set(used)) == len(used) == replicas * per_replica
    assert set(used) <= set(range(gpus))
    assert not found.shared
    assert found.learner not in {f"cuda:{gpu}" for gpu in used}


@pytest.mark.parametrize(("for_cpu", "seen"), [(True, 0), (False, 3)])
def test_a_vllm_built_for_the_cpu_has_no_gpu_whatever_torch_sees(
    monkeypatch: pytest.MonkeyPatch, for_cpu: bool, seen: int
) -> None:
    monkeypatch.setattr(placement, "built_for_cpu", lambda: for_cpu)
    assert placement.visible_gpus(lambda: 3) == seen
