"""How many of the labelled bad verifiers the checks catch by the check named first, and how many good ones they accuse.

    python benchmarks/verifier_recall.py [--only WORD] [--sandbox bubblewrap|docker] [--json]

The tasks are those of tests/labelled, written to a temporary folder; every check is asked of each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from envsdk.checks.engine import check_tasks
from envsdk.checks.interval import wilson
from envsdk.checks.report import CheckReport
from envsdk.sandboxes import open_provider
from envsdk.spec.load import load_task
from tests.labelled.catalogue import CASES
from tests.labelled.mini import Labelled, write


@dataclass(frozen=True)
class Judged:
    """One task with what the checks said of it."""

    case: Labelled
    failed: dict[str, str]
    undecided: dict[str, str]

    @property
    def is_right(self) -> bool:
        """Caught by the check named first; or, a good one, accused by none and undecided in none."""
        if self.case.is_good:
            return not self.failed and not self.undecided
        return self.case.caught_by[0] in self.failed


def judge(case: Labelled, report: CheckReport) -> Judged:
    said = {
        outcome: {row.check: row.why for row in report.checks if row.outcome == outcome}
        for outcome in ("fail", "error")
    }
    return Judged(case, said["fail"], said["error"])


async def measure(cases: Sequence[Labelled], sandbox: str) -> list[Judged]:
    provider = open_provider(sandbox)
    try:
        with tempfile.TemporaryDirectory(prefix="envsdk-labelled-") as folder:
            tasks = [load_task(write(case, Path(folder))) for case in cases]
            reports = await check_tasks(tasks, provider, fresh=True)
    finally:
        await provider.close()
    return [judge(case, report) for case, report in zip(cases, reports, strict=True)]


def share(judged: Sequence[Judged], *, good: bool) -> dict[str, object]:
    chosen = [row for row in judged if row.case.is_good == good]
    hits = sum(row.is_right for row in chosen)
    low, high = wilson(hits, len(chosen))
    return {"right": hits, "of": len(chosen), "low": round(low, 3), "high": round(high, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.id]
    start = time.monotonic()
    judged = asyncio.run(measure(cases, options.sandbox))
    seconds = time.monotonic() - start
    bad, good = share(judged, good=False), share(judged, good=True)
    wrong = [row for row in judged if not row.is_right]
    if options.json:
        rows = [{"id": row.case.id, "failed": row.failed, "undecided": row.undecided} for row in wrong]
        print(json.dumps({"bad": bad, "good": good, "seconds": round(seconds, 1), "wrong": rows}, indent=1))
        return
    for row in wrong:
        print(f"{row.case.id}: wanted {', '.join(row.case.caught_by) or 'nothing'}; {row.case.why}")
        for check, why in {**row.failed, **row.undecided}.items():
            print(f"    {check}: {why}")
    interval = f"interval {bad['low']} to {bad['high']}"
    print(f"bad ones caught by the check named first: {bad['right']} of {bad['of']}, {interval}")
    print(f"good ones without an accusation: {good['right']} of {good['of']}; {seconds:.0f} s")


if __name__ == "__main__":
    main()
