"""The preloaded library moves the wall clock, and nothing else."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsdk.errors import UsageError
from envsdk.verifying import clock_shift

DAY_S = 86400


def shifted(shift: str, code: str) -> str:
    path, place = clock_shift.library()
    variables = {**clock_shift.variables(shift), "PATH": "/usr/bin:/bin"}
    assert variables["LD_PRELOAD"] == place
    variables["LD_PRELOAD"] = str(path)
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    return ended.stdout


@pytest.mark.parametrize(("shift", "seconds"), [("+400d", 400 * DAY_S), ("-2h", -7200), ("+90s", 90), ("+5m", 300)])
def test_the_wall_clock_moves_by_the_shift(shift: str, seconds: int) -> None:
    before = time.time()
    seen = float(shifted(shift, "import time; print(time.time())"))
    assert before + seconds - 1 <= seen <= time.time() + seconds + 1


def test_children_and_dates_move_too() -> None:
    code = "import subprocess; print(subprocess.run(['date', '+%s'], capture_output=True, text=True).stdout)"
    assert abs(float(shifted("+1d", code)) - time.time() - DAY_S) < 60


def test_monotonic_time_sleeps_and_file_times_stay(tmp_path: Path) -> None:
    code = (
        "import os, time; a = time.monotonic(); time.sleep(0.05); b = time.monotonic()\n"
        f"open({str(tmp_path / 'f')!r}, 'w').close(); print(b - a, os.stat({str(tmp_path / 'f')!r}).st_mtime)"
    )
    slept, written = map(float, shifted("+400d", code).split())
    assert 0.05 <= slept < DAY_S
    assert abs(written - time.time()) < DAY_S


def test_an_absolute_wait_on_the_moved_clock_ends_in_time() -> None:
    assert shifted("+400d", "import threading; print(threading.Event().wait(0.05))").strip() == "False"


@pytest.mark.parametrize("shift", ["", "400d", "+d", "+1y", "+1.5d", "tomorrow"])
def test_what_is_no_shift_is_refused(shift: str) -> None:
    with pytest.raises(UsageError) as refused:
        clock_shift.variables(shift)
    assert refused.value.code == "bad_clock_shift"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="pending: another processor's library")
def test_the_shipped_library_behaves_as_one_built_from_the_source(tmp_path: Path) -> None:
    built = tmp_path / "built"
    clock_shift.build(built)
    symbols = [
        set(
            subprocess.run(
                ["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True
            ).stdout.split()[2::3]
        )
        for path in (built, clock_shift.library()[0])
    ]
    assert symbols[0] == symbols[1]
    assert {"clock_gettime", "gettimeofday", "time"} <= symbols[1]
