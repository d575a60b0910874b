"""Rows of questions and answers in and out: JSON lines, JSON, CSV, or a folder that Hugging Face `datasets` saved.

A column map says which columns are the instruction and the answer; the task's verifier compares by a grader, by default
the whole answer, white space at its ends aside. Every other column is kept as the task's metadata.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envsdk.authoring.write import default_dockerfile, mutant_files, python_verifier_files, reply_files
from envsdk.errors import PrerequisiteError, UsageError
from envsdk.files.replace import write_whole
from envsdk.formats.result import ImportResult, Walk, free_place, quietly
from envsdk.graders import GRADERS
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.load import Rejected
from envsdk.spec.meaning import ANSWER_PATH, slug_of
from envsdk.spec.model import AgentSpec, Budget, Task, TaskSpec, VerifierSpec
from envsdk.suggest import did_you_mean

COLUMNS = ("instruction", "answer", "slug", "wrong")
"""What a column can be: the last two may be absent; ``wrong`` holds a list of answers that must fail."""

VERIFIER = b'''"""Compares the whole answer with the expected one, white space at its ends aside."""


def same_text(answer: str, *, expected: str) -> float:
    """1 where they are equal."""
    return float(answer.strip() == expected.strip())
'''
GRADED_VERIFIER = b'''"""Compares the answer with the expected one, by the grader that the parameters name."""

from envsdk.graders import GRADERS


def graded(answer: str, *, expected: str, grader: str) -> float:
    """1 where the grader says that it is correct."""
    return float(GRADERS[grader](answer, expected) == "correct")
'''
_ROW = "one JSON object a row, a value under each column's name"
UNFIT = {"json_schema", "sql"}
"""Graders whose truth is no answer."""


def import_dataset(
    source: Path,
    dest: Path,
    *,
    columns: Mapping[str, str],
    name: str = "",
    grader: str = "exact",
    walk: Walk = quietly,
) -> ImportResult:
    """Make one text task of each row.

    Args:
        source: a ``.jsonl``, ``.json`` or ``.csv`` file, or a folder saved by `datasets`.
        dest: a folder; each task becomes ``dest/<slug>``.
        columns: from one of `COLUMNS` to the name of a column; a name that is left out is the column of that name.
        name: first part of slugs, where no column gives them; default: the source's name.
        grader: one of `envsdk.graders.GRADERS`; a row whose own answer it does not take is rejected.
        walk: goes through the rows.

    Raises:
        UsageError: the source cannot be read, or the map names what does not exist.
        PrerequisiteError: the folder needs `datasets` (code ``extra_missing``).
    """
    mapped = _checked(columns)
    if grader not in GRADERS or grader in UNFIT:
        known = sorted(GRADERS.keys() - UNFIT)
        hint = did_you_mean(grader, known) or f"one of {', '.join(known)}"
        raise UsageError(f"no grader {grader!r} of an answer", code="no_grader", hint=hint)
    result = ImportResult()
    first_line = 2 if source.suffix == ".csv" else 1  # below the header
    lacking = {mapped["instruction"], mapped["answer"]}
    columns_there: list[str] = []
    for number, row in enumerate(walk(read_rows(source))):
        path = f"{source}:{number + first_line}"
        if isinstance(row, UsageError):
            result.rejected.append(Rejected(path=path, code=row.code, why=row.message))
            continue
        lacking -= row.keys()
        columns_there = list(map(str, row))
        slug = (
            slug_of(str(row[mapped["slug"]]))
            if mapped["slug"] in row
            else f"{name or slug_of(source.stem)}-{number + 1}"
        )
        result.add(path, lambda row=row, slug=slug: _task(row, mapped, dest, slug, grader))  # type: ignore[misc]
    if lacking and columns_there:  # said once, not of each row
        column = min(lacking)
        hint = did_you_mean(column, columns_there) or f"columns are {', '.join(columns_there)}"
        raise UsageError(f"no row has a column {column!r}", code="missing_column", where=str(source), hint=hint)
    return result


def _checked(columns: Mapping[str, str]) -> dict[str, str]:
    for key in columns:
        if key not in COLUMNS:
            hint = did_you_mean(key, COLUMNS) or f"one of {', '.join(COLUMNS)}"
            raise UsageError(f"a column cannot be {key!r}", code="bad_column_map", hint=hint)
    return {key: columns.get(key, key) for key in COLUMNS}


def _task(row: Mapping[str, Any], columns: Mapping[str, str], dest: Path, slug: str, grader: str) -> Task:
    for key in ("instruction", "answer"):
        if columns[key] not in row or row[columns[key]] in (None, ""):
            known = did_you_mean(columns[key], row) or f"columns are {', '.join(map(str, row))}"
            hint = "fill it in, or leave the row out" if columns[key] in row else known
            raise UsageError(f"no value in column {columns[key]!r}", code="missing_column", where=slug, hint=hint)
    answer = str(row[columns["answer"]])
    if grader != "exact" and GRADERS[grader](_reply(answer, grader), answer) != "correct":
        raise UsageError(f"its own answer is none to the grader {grader}", code="oracle_fails", where=slug)
    source, function, options = (
        (VERIFIER, "same_text", {}) if grader == "exact" else (GRADED_VERIFIER, "graded", {"grader": grader})
    )
    wrong = row.get(columns["wrong"]) or []
    spec = TaskSpec(
        slug=slug,
        instruction=str(row[columns["instruction"]]),
        agent=AgentSpec(protocol="answer"),
        verifier=VerifierSpec(
            kind="text",
            entry=f"tests/verifier.py::{function}",
            params={"expected": answer, **options},
            exit_status="native",
        ),
        budget=Budget(turns=1),
        artifacts=(ANSWER_PATH,),
        metadata={"row": _storable({key: value for key, value in row.items() if key not in columns.values()})},
    )
    files = {
        "environment/Dockerfile": FileContent(default_dockerfile().encode()),
        **python_verifier_files(source, function, kind="text"),
        **reply_files(_reply(answer, grader), protocol="answer"),
        **mutant_files(
            [str(item) for item in wrong] if isinstance(wrong, list) else [str(wrong)], "wrong", protocol="answer"
        ),
    }
    return dump_task(spec, files, free_place(dest, slug))


def _reply(answer: str, grader: str) -> str:
    """The row's answer as a model would give it."""
    return rf"\boxed{{{answer}}}" if grader == "boxed" else answer


def _storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Values that TOML can hold as they are; anything else as its JSON text."""
    kept = {}
    for key, value in row.items():
        if value is None:
            continue
        plain = isinstance(value, str | bool | int | float) and value == value  # noqa: PLR0124 - NaN is not equal to itself
        kept[str(key)] = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    return kept


def read_rows(source: Path) -> Iterator[dict[str, Any] | UsageError]:
    """Rows of a file or folder, in order; in place of one that is none, its fault. Raises as `import_dataset` does."""
    if source.is_dir():
        return _saved_rows(source)
    readers = {".jsonl": _jsonl_rows, ".json": _json_rows, ".csv": _csv_rows}
    if source.suffix not in readers or not source.is_file():
        hint = "give a .jsonl, .json or .csv file, or a folder saved by datasets"
        raise UsageError("cannot be read as rows", code="bad_rows", where=str(source), hint=hint)
    return readers[source.suffix](source)


def _jsonl_rows(source: Path) -> Iterator[dict[str, Any] | UsageError]:
    with source.open("rb") as stream:
        yield from (_row(line) for line in stream if line.strip())


def _json_rows(source: Path) -> Iterator[dict[str, Any] | UsageError]:
    try:
        rows = json.loads(source.read_bytes())
    except ValueError as error:
        raise UsageError(f"is not JSON: {error}", code="bad_rows", where=str(source), hint="write JSON") from error
    yield from (_object(row) for row in (rows if isinstance(rows, list) else [rows]))


def _csv_rows(source: Path) -> Iterator[dict[str, Any] | UsageError]:
    with source.open(encoding="utf-8-sig", newline="") as stream:
        yield from csv.DictReader(stream)


def _saved_rows(source: Path) -> Iterator[dict[str, Any] | UsageError]:
    try:
        import datasets
    except ModuleNotFoundError as error:
        hint = "pip install 'envsdk[formats]'"
        raise PrerequisiteError(
            "a saved folder needs datasets", code="extra_missing", where=str(source), hint=hint
        ) from error
    try:
        loaded = datasets.load_from_disk(str(source))
    except (FileNotFoundError, ValueError) as error:
        raise UsageError(f"is no saved dataset: {error}", code="bad_rows", where=str(source)) from error
    for part in loaded.values() if isinstance(loaded, datasets.DatasetDict) else [loaded]:
        yield from part


def _row(line: bytes) -> dict[str, Any] | UsageError:
    try:
        return _object(json.loads(line))
    except ValueError as error:
        return UsageError(f"is not JSON: {error}", code="bad_row", hint=_ROW)


def _object(value: Any) -> dict[str, Any] | UsageError:
    return value if isinstance(value, dict) else UsageError("is no JSON object", code="bad_row", hint=_ROW)


def export_dataset(tasks: Iterable[Task], dest: Path) -> int:
    """Write one JSON row a task to the file ``dest``, all or nothing; returns their number.

    Raises:
        UsageError: the file exists (code ``destination_exists``).
    """
    if dest.exists():
        raise UsageError("exists already", code="destination_exists", where=str(dest), hint="give another path")
    lines = [json.dumps(as_row(task), ensure_ascii=False, allow_nan=False, default=str) + "\n" for task in tasks]
    write_whole(dest, "".join(lines))
    return len(lines)


def as_row(task: Task) -> dict[str, Any]:
    """A task as a row: what a trainer without sandboxes needs, and the digests that name the rest."""
    spec = task.spec
    oracle = task.root / "solution" / "answer.txt"
    return {
        "slug": spec.slug,
        "instruction": spec.instruction,
        "answer": oracle.read_bytes().decode() if oracle.is_file() else None,
        "system": spec.agent.system,
        "examples": [example.model_dump() for example in spec.agent.examples],
        "protocol": spec.agent.protocol,
        "family": spec.family,
        "level": spec.level,
        "seed": spec.seed,
        "tags": list(spec.tags),
        "params": spec.verifier.params,
        "task_digest": task.digests.task,
        "verifier_digest": task.digests.verifier,
    }
