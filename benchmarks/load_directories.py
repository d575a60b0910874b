"""Load, validate and digest thousands of Harbor task directories on one core.

    python benchmarks/load_directories.py [--count 3500] [--source FOLDER]

Copies the task directories of ``--source`` (default: the handed miniatures) until there are ``--count``, loads them
twice (the first fills the page cache) and prints seconds of CPU, seconds on the clock, tasks and rejections, and how
much the process grew between a tenth of them and all: the records themselves, since contents are read as streams.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

from envsdk.spec.load import LoadResult, find_task_directories, load_tasks

CASES = Path(__file__).parents[1] / "tests" / "conformance" / "cases" / "verifier_defects"


def copies(source: Path, dest: Path, count: int) -> None:
    """``count`` task directories under ``dest``."""
    places = list(find_task_directories(source))
    for number, place in zip(range(count), itertools.cycle(places), strict=False):
        shutil.copytree(place, dest / f"{number:05d}-{place.name}", symlinks=True)


def timed(paths: list[Path]) -> tuple[LoadResult, float, float, float]:
    """The result, CPU seconds, clock seconds, and the peak of the resident set in MiB."""
    cpu, clock = time.process_time(), time.monotonic()
    result = load_tasks(paths)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result, time.process_time() - cpu, time.monotonic() - clock, peak_mib


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3500)
    parser.add_argument("--source", type=Path, default=CASES)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="envsdk-load-") as folder:
        copies(options.source, Path(folder), options.count)
        places = sorted(Path(folder).iterdir())
        few_mib = timed(places[: max(1, len(places) // 10)])[3]
        result, cpu_s, clock_s, all_mib = timed(places)
    counts = f"{len(result.tasks)} tasks, {len(result.rejected)} rejected"
    print(f"{counts}: {cpu_s:.1f} s of CPU, {clock_s:.1f} s on the clock")
    print(f"{all_mib:.0f} MiB at most, {all_mib - few_mib:.0f} MiB more than for a tenth of them")


if __name__ == "__main__":
    main()
