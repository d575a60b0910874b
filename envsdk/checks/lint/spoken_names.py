"""Names on which instruction and verifier must agree: functions of a module, keys of a JSON answer, columns of a table.

A name that the verifier asks for must stand in the instruction. Only what is surely asked of the submission counts: an
import from a module that the agent writes, a key of a value that was read from JSON, and a column of a row that
`csv.DictReader` gave.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from envsdk.checks.lint.asked_of_code import is_said, messages, parameters
from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.literal_objects import compared_keys

_LOADED = re.compile(r"(?P<name>\w+)\s*=\s*json\.loads?\(")
_READER = re.compile(r"(?:(?P<rows>\w+)\s*=\s*(?:list\(|\[\*)?|\bin\s+(?:list\()?)csv\.DictReader\(")
_OWN = re.compile(r"/tests/")


def spoken_names(files: TaskFiles, given: str = "") -> Iterator[tuple[str, Fault]]:
    """Path of the artifact and the fault; whether that file lies in the image already is asked of whoever has a box.

    ``given``: texts of the image, whose words an answer may have for keys.
    """
    spec = files.task.spec
    if spec.steps or spec.agent.protocol != "shell":
        return
    for artifact in spec.artifacts:
        name = posixpath.basename(artifact)
        stem, suffix = posixpath.splitext(name)
        for path, text in files.under("tests").items():
            is_module = suffix == ".py"
            words = set(re.findall(r"\w+", spec.instruction if is_module else spec.instruction.replace(name, "")))
            asked = _functions(stem, text) if is_module else _keys(name, text, _LOADS.get(suffix, _nothing)(text))
            found = list(asked)
            compared: set[str] = set()
            if suffix == ".json" and name in text and not _reads_its_own(text):
                rows = list(compared_keys(path, text))
                compared = {key for key, _ in rows}
                found = [*found, *rows]
            if is_module and path.endswith(".py"):
                yield from _beyond_names(stem, path, text, spec.instruction + given)
            for word, number in found:
                if word not in words and not (word in compared and word in given):
                    yield artifact, Fault("unknown_name", path, number, _said(word, artifact, words))


def _beyond_names(stem: str, path: str, text: str, known: str) -> Iterator[tuple[str, Fault]]:
    """Parameters and words of errors; no stub accounts for them but by its text, so that no artifact is told."""
    words = set(re.findall(r"\w+", known))
    for word, number in parameters(stem, text):
        if word not in words:
            what = f"calls a function of {stem} by its parameter {word}, which the instruction does not name"
            yield "", Fault("unknown_name", path, number, what)
    is_its = re.search(rf"\b(?:from|import)\s+{re.escape(stem)}\b", text) is not None
    for message, number in messages(text) if is_its else ():
        if not is_said(message, known):
            what = f"wants an error of {stem} to say {message!r}, which the instruction does not"
            yield "", Fault("unknown_name", path, number, what)


def _functions(stem: str, text: str) -> Iterator[tuple[str, int]]:
    # Also within the text of a program that the verifier hands to an interpreter.
    imports = re.compile(
        rf"(?:^|[;\"'])\s*from\s+{re.escape(stem)}\s+import\s+(?P<names>\w+(?: as \w+)?(?:, *\w+(?: as \w+)?)*)"
        r"\s*(?:$|[;\"'\\])"
    )
    calls = re.compile(rf"(?<![\w.]){re.escape(stem)}\.(?P<name>[a-z]\w*)\(")
    is_imported = re.search(rf"\bimport\s+{re.escape(stem)}\b", text) is not None
    for number, line in enumerate(text.splitlines(), 1):
        if match := imports.search(line):
            yield from ((name.split()[0], number) for name in match["names"].split(","))
        elif is_imported:
            yield from ((match["name"], number) for match in calls.finditer(line))


def _objects(text: str) -> set[str]:
    """Variables that hold what was read from JSON."""
    return {match["name"] for match in _LOADED.finditer(text)}


def _rows(text: str) -> set[str]:
    """Variables that run through the rows of a table with a head."""
    read = [match["rows"] for match in _READER.finditer(text)]
    sources = "|".join(["csv\\.DictReader", *(re.escape(rows) + r"\b" for rows in read if rows)])
    return set(re.findall(rf"\bfor\s+(\w+)\s+in\s+(?:list\()?(?:{sources})", text)) if read else set()


def _nothing(text: str) -> set[str]:  # noqa: ARG001 - as the others
    return set()


_LOADS: Mapping[str, Callable[[str], set[str]]] = {".json": _objects, ".csv": _rows, ".tsv": _rows}


def _keys(name: str, text: str, variables: set[str]) -> Iterator[tuple[str, int]]:
    """Keys asked of some variables, where the text reads one file of that name and none of its own."""
    if name not in text or _reads_its_own(text):
        return
    for loaded in variables:
        key = re.compile(rf"(?<![\w.]){re.escape(loaded)}(?:\.get\(|\[)\s*[\"'](?P<key>\w+)[\"']")
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((match["key"], number) for match in key.finditer(line))


def _reads_its_own(text: str) -> bool:
    """It reads a file under /tests, so that a key may be of that one."""
    return _OWN.search(re.sub(r"/tests/test\.sh", "", text)) is not None


def _said(word: str, artifact: str, words: set[str]) -> str:
    near = difflib.get_close_matches(word, sorted(words), n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"asks {artifact} for {word}, which the instruction does not name{hint}"
