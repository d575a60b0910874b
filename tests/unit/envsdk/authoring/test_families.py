"""Families draw the same task for the same seed and level, everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.authoring.families import Family
from envsdk.authoring.find import declared_in, get_family, import_source, one_task, registered_families
from envsdk.errors import UsageError

SOURCE = Path(__file__).with_name("authored_sample.py")


@pytest.fixture(scope="module")
def letters() -> Family:
    return next(Family(d) for d in declared_in(import_source(SOURCE).__name__) if d.name == "letters")


def test_settings_are_every_combination_easiest_first(letters: Family) -> None:
    settings = list(letters.settings())
    assert (len(settings), settings[0], settings[-1]) == (6, {"length": 1, "loud": False}, {"length": 5, "loud": True})


def test_a_knob_left_out_is_at_its_easiest(letters: Family) -> None:
    assert letters.complete({"loud": True}) == {"length": 1, "loud": True}


@pytest.mark.parametrize("level", [{"lenght": 1}, {"length": 3}, {"length": True}, {"length": 1.0}, {"loud": 1}])
def test_a_level_that_is_none_is_refused(letters: Family, level) -> None:
    with pytest.raises(UsageError) as caught:
        letters.complete(level)
    assert caught.value.code == "bad_level"


def test_a_mistyped_knob_is_guessed(letters: Family) -> None:
    with pytest.raises(UsageError) as caught:
        letters.complete({"lenght": 1})
    assert caught.value.hint == "did you mean 'length'?"


@given(st.integers(0, 2**40))
def test_the_same_seed_draws_the_same(letters: Family, seed: int) -> None:
    level = {"length": 5}
    assert letters.sample(seed=seed, level=level) == letters.sample(seed=seed, level=level)


def test_seeds_and_levels_draw_differently(letters: Family) -> None:
    drawn = {letters.sample(seed=seed, level={"length": 5}).instruction for seed in range(50)}
    assert len(drawn) > 45


def test_a_known_draw_stays_as_it_is(letters: Family) -> None:
    """A golden vector: if this changes, every published task of every family is another."""
    assert letters.sample(seed=3, level={"length": 5}).oracle == "echo fahce"


def test_another_process_and_hash_seed_draw_the_same(letters: Family) -> None:
    line = (
        "import sys; from envsdk.authoring.find import *; from envsdk.authoring.families import Family\n"
        "f = [Family(d) for d in declared_in(import_source(sys.argv[1]).__name__) if d.name == 'letters'][0]\n"
        "print([f.sample(seed=s, level={'length': 5}).oracle for s in range(5)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", line, str(SOURCE)],
        env={**os.environ, "PYTHONHASHSEED": "99"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str([letters.sample(seed=s, level={"length": 5}).oracle for s in range(5)])


def test_drawing_many_passes_over_repeats(letters: Family, tmp_path: Path) -> None:
    tasks = letters.draw_many(seeds=range(40), dest=tmp_path)
    assert len({t.digests.task for t in tasks}) == len(tasks) <= 8
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(t.slug for t in tasks)


def test_the_guess_is_by_level(letters: Family) -> None:
    assert letters.predicted_pass({"length": 5}) == 0.1


def test_a_family_that_is_none_is_guessed() -> None:
    with pytest.raises(UsageError) as caught:
        get_family("uper-word")
    assert (caught.value.code, caught.value.hint) == ("no_family", "did you mean 'upper-word'?")


TWO = """
from envsdk import Draw, family, task, verifier

@verifier
def right(answer: str) -> float:
    return float(answer == "1")

def draw(rng, *, size):
    return Draw(instruction=f"One of {size}?", oracle="1", wrong=["2"])

one_family = family(verifier=right, levels={"size": (1, 2)}, name="one-family")(draw)
other_family = family(verifier=right, levels={"size": (1, 2)}, name="other-family")(draw)

@task(verifier=right)
def alone() -> Draw:
    return Draw(instruction="One?", oracle="1", wrong=["2"])
"""


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.py"
    path.write_text(TWO)
    return str(path)


def test_a_family_of_a_file_needs_no_installation(two: str) -> None:
    assert get_family(f"{two}::other-family").name == "other-family"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("", "which_family", "::one-family"), ("::one-famly", "no_family", "did you mean 'one-family'?")],
)
def test_a_file_says_which_families_it_has(two: str, name: str, code: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        get_family(two + name)
    assert caught.value.code == code
    assert said in caught.value.hint


def test_a_task_of_a_file_goes_by_its_slug(two: str, tmp_path: Path) -> None:
    assert one_task(f"{two}::alone", tmp_path / "a").slug == "alone"
    assert one_task(f"{two}::one-family-2-0", tmp_path / "b").slug == "one-family-2-0"


@pytest.mark.parametrize(
    ("name", "code", "said"), [("", "which_task", "::alone"), ("::alon", "no_task", "did you mean 'alone'?")]
)
def test_a_file_says_which_tasks_it_has(two: str, tmp_path: Path, name: str, code: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        one_task(two + name, tmp_path)
    assert caught.value.code == code
    assert said in caught.value.hint


def test_a_draw_that_cannot_be_written_names_its_task(tmp_path: Path) -> None:
    path = tmp_path / "misfit.py"
    path.write_text(TWO.replace('instruction="One?", ', 'instruction="One?", params={"size": 3}, '))
    with pytest.raises(UsageError) as caught:
        one_task(f"{path}::alone", tmp_path / "out")
    assert (caught.value.code, caught.value.where) == ("params_mismatch", "alone: right")


def test_bundled_families_are_found_by_entry_point() -> None:
    assert {"upper-word", "shell-line", "file-chores", "fix-function", "ledger-api"} <= set(registered_families())
