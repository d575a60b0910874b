"""The labelled tasks themselves: each loads, names checks that there are, and every kind has a good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.checks.catalogue import CHECKS
from envsdk.spec.load import load_tasks
from tests.labelled import catalogue, toolchains
from tests.labelled.mini import Labelled, write

ALL = (*catalogue.CASES, *toolchains.CASES)


def test_every_labelled_task_loads_without_a_warning_of_its_own(tmp_path: Path) -> None:
    folders = [write(case, tmp_path) for case in ALL if not case.prepare]
    loaded = load_tasks(folders)
    assert loaded.rejected == ()
    assert len(loaded.tasks) == len(folders)


def test_labels_name_checks_that_there_are() -> None:
    known = {check.id for check in CHECKS}
    assert {name for case in ALL for name in case.caught_by} <= known


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_a_name_says_whether_it_is_good_and_a_label_says_why(case: Labelled) -> None:
    assert case.is_good == case.id.startswith("good-")
    assert len(case.why.split()) >= 2


def test_every_kind_of_fault_but_one_has_a_good_one_beside_it() -> None:
    kinds = {case.id.removeprefix("good-").split("-")[0] for case in catalogue.CASES}
    good = {case.id.split("-")[1] for case in catalogue.CASES if case.is_good}
    assert kinds - good == {"vacuous"}


def test_what_is_written_is_what_the_label_holds(tmp_path: Path) -> None:
    case = next(case for case in catalogue.CASES if case.id == "manifest-crlf-helper")
    folder = write(case, tmp_path)
    assert (folder / "tests" / "verify").read_bytes().startswith(b"#!/bin/sh\r\n")
    assert (folder / "tests" / "test.sh").stat().st_mode & 0o111
    assert not (folder / "tests" / "verify").stat().st_mode & 0o111
