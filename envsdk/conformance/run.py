"""Run case files: every file of cases under a folder, by the kind in its head.

A case file is YAML (``kind:`` in its head) or JSON (``header.file``). Who can judge a kind is found through the
entry-point group ``envsdk.conformance``: each package offers ``KINDS``, a mapping from kind to a function of the case.
A kind or option that nobody knows is skipped and named, never counted as passed; so is a file that cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

import yaml

from envsdk.errors import UsageError

UNREADABLE = "unreadable"
"""The kind of a file that cannot be parsed: one skipped case, by the file's name."""
_NO_FIELDS = ""
Judge = Callable[["Case"], None]


class SkipCaseError(Exception):
    """Raised by a judge that does not know a case's kind or option, or lacks what it needs; says which."""


def known(what: str, given: Iterable[str], understood: Iterable[str]) -> None:
    """Skip a case that says something its judge does not know, which might change the answer."""
    unknown = sorted(map(str, set(given) - set(understood)))
    if unknown:
        raise SkipCaseError(f"unknown {what}: {', '.join(unknown)}")


@dataclass(frozen=True)
class Case:
    """One case of one file. ``head`` is everything in the file but its cases; ``path`` is the file."""

    kind: str
    id: str
    body: Mapping[str, Any]
    head: Mapping[str, Any]
    path: Path


@dataclass(frozen=True)
class CaseResult:
    """What came of one case; ``why`` is empty for a pass."""

    case: Case
    outcome: Literal["passed", "failed", "skipped"]
    why: str = ""


@dataclass(frozen=True)
class Tally:
    """All results of one run."""

    results: tuple[CaseResult, ...] = field(default=())

    def count(self, outcome: str) -> int:
        """How many cases ended so."""
        return sum(result.outcome == outcome for result in self.results)

    def closing_line(self) -> str:
        """The last line of ``make conform``."""
        return f"{self.count('passed')} passed, {self.count('failed')} failed, {self.count('skipped')} skipped"


def installed_judges() -> dict[str, Judge]:
    """Every judge that an installed package offers, by kind; a package whose extra is missing offers none."""
    judges: dict[str, Judge] = {}
    for entry in entry_points(group="envsdk.conformance"):
        try:
            judges.update(entry.load())
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == entry.module.partition(".")[0]:
                raise  # a part of the package itself: a fault, not an extra that was left out
            continue  # its kinds are skipped and named, as those of a package that is not there
    return judges


def read_cases(folder: Path) -> Iterator[Case]:
    """All cases of all case files under ``folder``, in a stable order.

    Raises:
        UsageError: the folder does not exist, or holds no case file.
        OSError: a file cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}", code="no_cases", hint="give a folder that holds case files")
    found = False
    for path in sorted(folder.rglob("*")):
        parsed = _parse(path)
        if parsed is None:
            continue
        found = True
        kind, head, bodies = parsed
        for number, body in enumerate(bodies):
            fields = body if isinstance(body, dict) else {_NO_FIELDS: body}
            yield Case(kind, str(fields.get("id", number)), fields, head, path)
    if not found:
        raise UsageError(
            f"no case files under {folder}", code="no_cases", hint="a case file has a kind and cases in its head"
        )


def _parse(path: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]] | None:
    if not path.is_file() or path.suffix not in {".yaml", ".yml", ".json"}:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_SAFE_LOADER)  # noqa: S506
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        # A fixture of a case may be broken on purpose: what is not read is no failure, and is named.
        why = f"{path.name} cannot be read: {' '.join(str(error).split()) or type(error).__name__}"
        return UNREADABLE, {"why": why}, [{"id": path.name}]
    if not isinstance(content, dict) or not isinstance(content.get("cases"), list):
        return None
    head = {key: value for key, value in content.items() if key != "cases"}
    header = head.get("header")
    kind = head.get("kind") or (Path(str(header.get("file", ""))).stem if isinstance(header, dict) else "")
    return str(kind), head, content["cases"]


_SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def run_cases(
    folder: Path, judges: Mapping[str, Judge], *, report: Callable[[CaseResult], None] = lambda _: None
) -> Tally:
    """Judge every case under ``folder``; ``report`` hears each result as it comes."""
    results = []
    for case in read_cases(folder):
        result = _judge(case, judges)
        report(result)
        results.append(result)
    return Tally(tuple(results))


def _judge(case: Case, judges: Mapping[str, Judge]) -> CaseResult:
    if why := _not_a_case(case):
        return CaseResult(case, "skipped", why)
    judge = judges.get(case.kind)
    if judge is None:
        return CaseResult(case, "skipped", f"unknown kind {case.kind!r}")
    try:
        judge(case)
    except SkipCaseError as reason:
        return CaseResult(case, "skipped", str(reason))
    except Exception as error:  # noqa: BLE001 - whatever a case provokes is that case's failure; the run goes on
        return CaseResult(case, "failed", f"{type(error).__name__}: {error}")
    return CaseResult(case, "passed")


def _not_a_case(case: Case) -> str:
    if case.kind == UNREADABLE:
        return str(case.head.get("why", "it cannot be read"))
    if _NO_FIELDS in case.body:
        return "it has no fields"
    found = case.head.get("format", 1)
    return "" if found == 1 else f"unknown format {found!r}"
