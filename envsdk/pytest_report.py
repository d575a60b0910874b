"""What a pytest run found, gathered on the controller: a line a task on the terminal, and a JSON file.

The file has the shape of ``envsdk check --json``. Results come as properties of pytest's own reports, which is what
crosses from xdist's workers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from envsdk.checks.engine import verdict_of
from envsdk.checks.render import MARKS, standing
from envsdk.checks.report import CheckResult

_LONGEST = 400
Said = Sequence[Mapping[str, object]]
"""Properties of reports: ``envsdk_slug``, ``envsdk_result`` and the digests."""


def summarise(reporter: pytest.TerminalReporter, said: Said) -> None:
    """One line a task, and below it why checks could not decide: each reason once, since pytest shows no skip's."""
    reporter.section("verifiers", sep="-")
    for slug, results in sorted(_by_slug(said).items()):
        told, lacks = standing(verdict_of(results), results)
        bad = [result.check for result in results if result.outcome in {"fail", "error"}]
        passed = sum(result.outcome == "pass" for result in results)
        rest = f"; {', '.join(bad)}" if bad else f"; incomplete: {lacks}" if lacks else ""
        reporter.line(f"{MARKS[told]} {slug}  {passed} passed{rest}")
        for why in dict.fromkeys(result.why for result in results if result.outcome == "error"):
            alike = [result.check for result in results if result.outcome == "error" and result.why == why]
            reporter.line(f"    {MARKS['error']} {', '.join(alike)}: {' '.join(why.split())}")


def write(path: Path, said: Said) -> None:
    """All results as JSON, in the shape of ``envsdk check --json``."""
    digests = {row["envsdk_slug"]: {name: row[name] for name in ("task_digest", "verifier_digest")} for row in said}
    tasks = [
        {
            "slug": slug,
            **digests[slug],
            "verdict": verdict_of(results),
            "checks": [result.model_dump(mode="json") for result in results],
        }
        for slug, results in sorted(_by_slug(said).items())
    ]
    ok = all(task["verdict"] == "pass" for task in tasks)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"ok": ok, "errors": [], "tasks": tasks}, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _by_slug(said: Said) -> dict[str, list[CheckResult]]:
    found: dict[str, list[CheckResult]] = {}
    for row in said:
        result = CheckResult.model_validate_json(str(row["envsdk_result"]))
        found.setdefault(str(row["envsdk_slug"]), []).append(result)
    return found


def differences(left: object, right: object) -> list[str] | None:
    """The fields in which two records differ; `None` for what is no record."""
    one, other = _fields(left), _fields(right)
    if one is None or other is None:
        return None
    rows = [
        f"  {name}: {one[name]!r:.{_LONGEST}} != {other[name]!r:.{_LONGEST}}"
        for name in one
        if one[name] != other[name]
    ]
    return [f"two records of {type(left).__name__} differ in {len(rows)} fields", *rows]


def _fields(record: object) -> dict[str, object] | None:
    if isinstance(record, BaseModel):
        return dict(record)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return None
