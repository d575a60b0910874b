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
from envsdk.authoring.find import declared_in, get_family, import_source, registered_families
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


def test_bundled_families_are_found_by_entry_point() -> None:
    assert {"upper-word", "shell-line", "file-chores", "fix-function", "ledger-api"} <= set(registered_families())
