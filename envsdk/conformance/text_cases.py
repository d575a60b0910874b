"""Judge of ``text_and_files``: archives, JSONL, output decoding, plain text; digests have a file of their own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from envsdk.conformance.archive_builder import build_archive
from envsdk.conformance.digest_cases import DIGEST_KINDS
from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, SkipCaseError
from envsdk.errors import EnvsdkError
from envsdk.files.archive import unpack
from envsdk.files.jsonl import append_row, read_rows, write_rows
from envsdk.files.members import Limits
from envsdk.files.output import collect, plain

Fields = Mapping[str, Any]


def judge_archive(given: Fields, expected: Fields) -> None:
    """Unpacks to exactly these files, or is refused with this code and leaves nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive, dest = folder / "in" / "archive", folder / "out" / "tree"
        archive.parent.mkdir()
        build_archive(given["format"], given["members"], archive)
        try:
            files = unpack(archive, dest, limits=Limits(**given.get("limits", {})))
        except EnvsdkError as error:
            _refused_rightly(error, expected)
            left = sorted(str(path) for path in (folder / "out").rglob("*"))
            assert not left, f"left behind: {left}"
            return
        assert "error" not in expected, f"accepted, expected {expected['error']}"
        assert files == sorted(expected["files"]), f"unpacked {files}"
        found = sorted(
            str(path.relative_to(dest)) for path in dest.rglob("*") if path.is_symlink() or not path.is_dir()
        )
        assert found == files, f"on disk: {found}"


def judge_jsonl_write(given: Fields, expected: Fields) -> None:
    """Rows come back equal, one newline each, or are refused before anything is written."""
    rows = [json.loads(text) for text in given["row_json"]] if "row_json" in given else list(given["rows"])
    wanted = list(expected.get("rows", []))
    if "repeat" in given:
        rows, wanted = ([{**row, "t": row["t"] * given["repeat"]} for row in some] for some in (rows, wanted))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl"
        try:
            write_rows(path, rows)
        except EnvsdkError as error:
            _refused_rightly(error, expected)
            assert not path.exists(), "a refused write left a file"
            return
        assert "error" not in expected, f"accepted, expected {expected['error']}"
        _same_rows(read_rows(path).rows, wanted)
        newlines = path.read_bytes().count(b"\n")
        assert newlines == expected["newlines"], f"{newlines} newlines"


def judge_jsonl_read(given: Fields, expected: Fields) -> None:
    """Rows and whether the last one is torn, or the line that is corrupt."""
    with tempfile.TemporaryDirectory() as name:
        path = _raw_file(given, Path(name))
        try:
            result = read_rows(path)
        except EnvsdkError as error:
            _refused_rightly(error, expected)
            return
        assert "error" not in expected, f"accepted, expected {expected['error']}"
        _same_rows(result.rows, list(expected["rows"]))
        assert result.torn == expected["torn"], f"torn is {result.torn}"


def judge_jsonl_append(given: Fields, expected: Fields) -> None:
    """What a reader finds after a row was appended to these bytes."""
    with tempfile.TemporaryDirectory() as name:
        path = _raw_file(given, Path(name))
        append_row(path, given["row"])
        result = read_rows(path)
        _same_rows(result.rows, list(expected["rows"]))
        assert not result.torn, "torn after an append"


def judge_output(given: Fields, expected: Fields) -> None:
    """Text of these chunks, whole or capped."""
    chunks = [bytes.fromhex(chunk) for chunk in given["chunks"]]
    if "fill_hex" in given:
        chunks.append(bytes.fromhex(given["fill_hex"]["unit"]) * given["fill_hex"]["times"])
    output = collect(chunks, cap_bytes=given.get("cap_bytes"))
    found = {
        "text": output.text,
        "chars": len(output.text),
        "truncated": output.truncated,
        "total_bytes": output.total_bytes,
        "replacement_chars": output.text.count("\ufffd"),
    }
    for key, value in expected.items():
        if key == "kept_bytes_max":
            kept = len(output.text.encode())
            assert kept <= value, f"kept {kept} bytes"
        else:
            assert found[key] == value, f"{key} is {found[key]!r}"


def judge_plain(given: Fields, expected: Fields) -> None:
    """Text without escape sequences."""
    text = plain(given["text"])
    assert text == expected["text"], f"shown as {text!r}"


_OUTPUT = ("text", "chars", "truncated", "total_bytes", "replacement_chars", "kept_bytes_max")
_JUDGES: dict[str, tuple[Callable[[Fields, Fields], None], tuple[str, ...], tuple[str, ...]]] = {
    # kind: judge, what its input may say, what may be expected
    "archive": (judge_archive, ("format", "members", "limits"), ("files", "error")),
    "jsonl_write": (judge_jsonl_write, ("rows", "row_json", "repeat"), ("rows", "newlines", "error")),
    "jsonl_read": (judge_jsonl_read, ("raw", "raw_hex"), ("rows", "torn", "error", "line")),
    "jsonl_append": (judge_jsonl_append, ("raw", "raw_hex", "row"), ("rows",)),
    "output": (judge_output, ("chunks", "fill_hex", "cap_bytes"), _OUTPUT),
    "plain": (judge_plain, ("text",), ("text",)),
}


def judge_text_and_files(case: Case) -> None:
    """Judge one case by its inner kind."""
    kind = str(case.body.get("kind"))
    if kind in DIGEST_KINDS:
        DIGEST_KINDS[kind](case)
    elif kind in _JUDGES:
        judge, inputs, expectations = _JUDGES[kind]
        known_fields(case, inputs, expectations)
        judge(case.body["input"], case.body["expected"])
    else:
        raise SkipCaseError(f"unknown kind {kind!r} in text_and_files")


def _refused_rightly(error: EnvsdkError, expected: Fields) -> None:
    assert error.code == expected.get("error"), f"refused with {error.code}: {error}"
    line = f":{expected['line']}" if "line" in expected else ""
    assert error.where.endswith(line), f"blamed {error.where}"


def _raw_file(given: Fields, folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(bytes.fromhex(given["raw_hex"]) if "raw_hex" in given else given["raw"].encode())
    return path


def _same_rows(found: list[dict[str, Any]], wanted: list[Any]) -> None:
    # Compared as JSON text as well: Python takes 1, 1.0 and True for equal.
    assert found == wanted, f"read {str(found)[:300]}"
    assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True), f"read {str(found)[:300]}"
