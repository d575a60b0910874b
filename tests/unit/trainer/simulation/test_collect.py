"""Planning from recorded durations: read strictly, reproducible, and honest about what each way keeps."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from envsdk.errors import UsageError
from trainer.simulation.collect import ARMS, CollectSetup, _longest_first, collect
from trainer.simulation.trace import TraceGroup
from trainer.simulation.trials import Recording, Trial, read_trials

SETUP = CollectSetup(groups_per_batch=4, group_size=3, slots=6, batches=30)


def a_recording(*, tasks: int = 12, seed: int = 0) -> Recording:
    """A long tail: a few tasks take far longer, and pass less often."""
    draw = random.Random(seed)
    by_task = {}
    for number in range(tasks):
        scale = 10.0 if number < 2 else 1.0
        trials = []
        for _ in range(5):
            agent = scale * draw.lognormvariate(2, 0.5)
            trials.append(Trial(f"t{number}", agent + 2.0, draw.random() < 0.7 / scale, (1.0, agent, 0.5)))
        by_task[f"t{number}"] = tuple(trials)
    return Recording(by_task, 0)


def by_name(recording: Recording, setup: CollectSetup = SETUP) -> dict:
    return {arm.name: arm for arm in collect(recording, setup)}


def test_all_arms_are_there_and_the_baseline_reduces_nothing() -> None:
    found = by_name(a_recording())
    assert set(found) == set(ARMS)
    assert (found["wait_all"].reduction, found["wait_all"].low, found["wait_all"].high) == (0.0, 0.0, 0.0)


def test_the_same_seed_gives_the_same_result() -> None:
    assert collect(a_recording(), SETUP) == collect(a_recording(), SETUP)


def test_intervals_hold_their_estimates() -> None:
    for arm in collect(a_recording(), SETUP):
        assert arm.low <= arm.reduction <= arm.high


def test_carry_over_is_faster_and_keeps_the_mix_that_first_complete_bends() -> None:
    found = by_name(a_recording(), CollectSetup(groups_per_batch=4, group_size=3, slots=12, batches=150))
    assert found["carry_over"].low > 0.2
    bent = found["first_complete"]
    assert bent.kept.mean_duration_s < 0.9 * bent.launched.mean_duration_s
    straight = found["carry_over"]
    assert straight.kept.mean_duration_s == pytest.approx(straight.launched.mean_duration_s, rel=0.1)


def test_longest_first_helps_where_slots_are_scarce() -> None:
    assert by_name(a_recording())["longest_first"].low > 0


def test_with_carry_over_longest_first_shortens_nothing_since_no_slot_waits_for_the_end_of_a_batch() -> None:
    setup = CollectSetup(groups_per_batch=4, group_size=3, slots=6, batches=150)
    found = by_name(a_recording(), setup)
    as_drawn, longest_first = found["carry_over"], found["carry_over_longest_first"]
    assert longest_first.collect_s == pytest.approx(as_drawn.collect_s, rel=0.03)
    assert longest_first.collect_s < found["longest_first"].collect_s


def test_longest_first_under_carry_over_starves_no_group() -> None:
    draw = random.Random(1)
    groups = [TraceGroup(f"g{n}", (1.0,), (True,), draw.random()) for n in range(10)]
    ordered = _longest_first(groups, 4)
    for start in (0, 4, 8):
        block = ordered[start : start + 4]
        assert {group.id for group in block} == {group.id for group in groups[start : start + 4]}
        assert [group.expected_s for group in block] == sorted((group.expected_s for group in block), reverse=True)


def test_the_path_adds_up_to_the_time() -> None:
    for arm in collect(a_recording(), SETUP):
        assert sum(arm.attribution.values()) == pytest.approx(arm.collect_s)
        assert min(arm.attribution.values()) >= 0


def test_with_a_slot_for_every_trial_the_order_changes_nothing() -> None:
    found = by_name(a_recording(), CollectSetup(groups_per_batch=4, group_size=3, slots=12, batches=20))
    assert found["longest_first"].collect_s == found["interleaved"].collect_s == found["wait_all"].collect_s


def test_only_the_arms_asked_for_run_beside_the_baseline() -> None:
    heard: list[str] = []
    collect(a_recording(), SETUP, arms=["carry_over"], report=heard.append)
    assert heard == ["wait_all", "carry_over"]


def write(folder: Path, text: str) -> Path:
    path = folder / "durations.csv"
    path.write_text(text)
    return path


def test_a_csv_is_read_by_its_column_names(tmp_path: Path) -> None:
    found = read_trials(write(tmp_path, "agent_s,task,passed,total_s,test_s,model\n5,a,1,9,2,m\n,a,0,4,,m\n"))
    assert found.by_task == {"a": (Trial("a", 9.0, True, (0.0, 5.0, 2.0)), Trial("a", 4.0, False, (0.0, 0.0, 0.0)))}


def test_rows_without_a_duration_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read_trials(write(tmp_path, "task,duration_s\na,1.5\nb,\n"))
    assert (list(found.by_task), found.untimed) == (["a"], 1)


def test_phases_never_exceed_the_whole(tmp_path: Path) -> None:
    trial = read_trials(write(tmp_path, "task,total_s,setup_s,agent_s\na,10,5,15\n")).by_task["a"][0]
    assert trial.phases_s == (2.5, 7.5, 0.0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("task,seconds\na,1\n", "invalid_trace"),
        ("task,total_s\na,soon\n", "invalid_trace"),
        ("task,total_s\na,-1\n", "invalid_trace"),
        ("task,total_s\na,inf\n", "invalid_trace"),
        ("task,total_s\na,\n", "invalid_trace"),
        ("", "invalid_trace"),
    ],
)
def test_what_cannot_be_a_trace_is_refused_by_code(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_trials(write(tmp_path, text))
    assert caught.value.code == code


def test_a_file_that_is_not_there_is_refused_by_code(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_trials(tmp_path / "none.csv")
    assert caught.value.code == "no_trace"
