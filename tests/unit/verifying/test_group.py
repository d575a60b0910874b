"""The control group of a verifier's process: what it bounds, and that nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsdk.sandboxes import cgroups
from envsdk.sandboxes.cgroups import Group
from envsdk.verifying import group as groups
from envsdk.verifying.group import end_group, joined, open_group

FORKS = """
import os, signal
made = 0
try:
    while made < 60:
        if os.fork() == 0:
            os.setsid()
            signal.pause()
        made += 1
except OSError:
    pass
print(made)
"""


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group | None]:
    """A small group, or `None` where this user cannot make one."""
    monkeypatch.setattr(groups, "MAX_PROCESSES", 20)
    opened = open_group()
    yield opened
    if opened is not None:
        end_group(opened)


def test_it_bounds_processes_and_ends_them_in_whatever_session(tmp_path: Path, group: Group | None) -> None:
    if group is None:
        assert cgroups.available() is False
        return
    with (tmp_path / "made").open("w") as out:  # a pipe would be held open by what it forks
        subprocess.run(joined([sys.executable, "-c", FORKS], group), stdout=out, check=True)
    made = int((tmp_path / "made").read_text())
    assert 0 < made < 20
    assert len(group.members()) == made
    end_group(group)
    assert (group.members(), group.remove()) == ([], True)


def test_words_of_a_command_reach_it_as_they_are(group: Group | None) -> None:
    words = ["printf", "[%s]", "a b", "$HOME", "'\"", ""]
    ended = subprocess.run(joined(words, group), capture_output=True, text=True, check=True)
    assert ended.stdout == "[a b][$HOME]['\"][]"


def test_a_group_of_a_dead_process_is_removed_and_of_a_living_one_left(group: Group | None) -> None:
    if group is None:
        assert cgroups.available() is False
        return
    folder = group.procs()[0].parent
    tag = folder.name.split("-")[1]
    abandoned = [path.parent.with_name(f"verifier-{tag}-999999999-1-dead") for path in group.procs()]
    for place in abandoned:
        place.mkdir()
    groups._remove_abandoned.cache_clear()
    groups._remove_abandoned()
    assert [place.exists() for place in (*abandoned, folder)] == [False] * len(abandoned) + [True]


def test_a_user_who_can_make_none_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "available", lambda: False)
    assert open_group() is None
    assert joined(["true"], None) == ["true"]


def test_the_folders_of_a_group_are_the_projects_own(group: Group | None) -> None:
    for path in group.procs() if group is not None else []:
        assert Path(path).parent.parent.name == cgroups.PARENT
