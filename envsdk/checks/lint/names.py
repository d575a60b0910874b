"""Paths on which instruction, artifacts and verifier must agree.

A path that the verifier reads, declared as an artifact or not, must be named by the instruction, lie in the image, or
be made by the verifier itself. What lies in the image is asked of whoever has a box.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.spec.model import TaskSpec

_CODE = frozenset({".py", ".sh", ".js", ".ts", ".rb", ".pl", ".c", ".cc", ".cpp", ".rs", ".go", ".java"})
_WORD = re.compile(r"[\w./-]+")
_NEAR = 0.6


@dataclass(frozen=True, slots=True)
class UnknownPath:
    """A path that the instruction does not know, where it stands, and what the instruction says instead."""

    path: str
    file: str
    line: int
    near: str

    def fault(self) -> Fault:
        """As a fault."""
        near = f"; did you mean {self.near}?" if self.near else ""
        return Fault("unknown_path", self.file, self.line, f"{self.path} is not named by the instruction{near}")


def unknown_paths(files: TaskFiles) -> Iterator[UnknownPath]:
    """Every candidate, each path once; those that exist in the image are to be taken out by the caller."""
    spec = files.task.spec
    if spec.steps or spec.agent.protocol != "shell":
        return
    workdir = spec.container.workdir if spec.container else "/app"
    seen: set[str] = set()
    # A Python verifier's file is its author's module, whose paths need not be the verifier's.
    read = _read_paths(files, workdir) if spec.verifier.kind == "script" else ()
    text = "\n".join(files.under("tests").values())
    judged = [row for row in _artifacts(files) if _is_judged(row[0], text, spec)]
    for path, file, line in [*judged, *read]:
        if path in seen or path.rstrip("/") == workdir.rstrip("/") or is_named(path, spec.instruction, workdir):
            continue
        seen.add(path)
        yield UnknownPath(path, file, line, _nearest(path, spec.instruction))


def is_named(path: str, instruction: str, workdir: str) -> bool:
    """The instruction names the path, its file or module name, a folder it lies in, or something inside it.

    A name that could be a word of prose counts only where it is quoted or part of a path.
    """
    clean = path.rstrip("/")
    words = {word.strip(".,") for word in _WORD.findall(instruction)}
    name = posixpath.basename(clean)
    stem, suffix = posixpath.splitext(name)
    if re.search(re.escape(clean) + r"(?![\w-])", instruction) or (suffix and name in words):
        return True
    same = [word for word in words if word.startswith("/") and posixpath.basename(word) == name]
    if same and all(_is_slip(word, clean, instruction) for word in same):
        return False
    quoted = stem if suffix in _CODE else name
    if re.search(rf"[`'\"/]{re.escape(quoted)}(?:\(.*?\))?[`'\"/]", instruction):
        return True
    folder = posixpath.dirname(clean)
    while len(folder) > len(workdir.rstrip("/")) and folder != "/":
        if re.search(re.escape(folder) + r"(?![\w-])", instruction):
            return True
        if any(word.startswith(posixpath.basename(folder) + "/") for word in words):
            return True
        folder = posixpath.dirname(folder)
    return False


def _is_slip(said: str, path: str, instruction: str) -> bool:
    """Two paths differ in one folder, whose names are near each other, and the instruction knows only the one."""
    pairs = list(zip(said.split("/"), path.split("/"), strict=False))
    other = [(one, two) for one, two in pairs if one != two]
    if said.count("/") != path.count("/") or len(other) != 1:
        return False
    one, two = other[0]
    is_near = difflib.SequenceMatcher(None, one, two).ratio() >= _NEAR
    return is_near and re.search(rf"(?<![\w-]){re.escape(two)}(?![\w-])", instruction) is None


def _is_judged(artifact: str, text: str, spec: TaskSpec) -> bool:
    """The verifier says its name; or the first part of it, where the instruction has another that is no artifact."""
    name = posixpath.basename(artifact.rstrip("/"))
    stem, suffix = posixpath.splitext(name)
    is_put_together = suffix != "" and re.search(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", text) is not None
    near = _nearest(artifact, spec.instruction) if is_put_together else ""
    return name in text or (near != "" and near not in spec.artifacts)


def _artifacts(files: TaskFiles) -> list[tuple[str, str, int]]:
    return [(path, "task.toml", 0) for path in files.task.spec.artifacts]


def _read_paths(files: TaskFiles, workdir: str) -> Iterator[tuple[str, str, int]]:
    pattern = re.compile(rf"(?<![\w.$}}/-]){re.escape(workdir.rstrip('/'))}/[\w./-]*\w")
    tests = files.under("tests")
    made = _made_by_verifier("\n".join(tests.values()), pattern)
    for file, text in tests.items():
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#"):
                continue
            for match in pattern.finditer(line):
                path = match[0]
                partial = line[match.end() : match.end() + 1] in {"$", "{", "*", "%"}
                if not partial and not any(path == other or path.startswith(other + "/") for other in made):
                    yield path, file, number


def _made_by_verifier(text: str, pattern: re.Pattern[str]) -> set[str]:
    """Paths that the verifier writes before it reads them."""
    path = pattern.pattern
    writes = rf"(?:>>?|\btee(?:\s+-a)?|\bmkdir(?:\s+-\S+)*|\btouch|\s-o|--output[= ]|\bPATH=)\s*[\"']?({path})"
    copies = rf"\b(?:cp|mv|ln|install)\b[^\n;&|]*\s[\"']?({path})/?[\"']?\s*(?:$|[;&|])"
    found = re.findall(writes, text) + re.findall(copies, text, re.MULTILINE)
    return {item.rstrip("/") for item in found}


def _nearest(path: str, instruction: str) -> str:
    named = {word.strip(".,") for word in _WORD.findall(instruction) if "/" in word}
    return next(iter(difflib.get_close_matches(path, sorted(named), n=1, cutoff=0.75)), "")
