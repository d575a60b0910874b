"""Files of the workspace that the verifier trusts: replaced by what passes, made to fit the submission, or forged."""

from __future__ import annotations

import fnmatch
import hashlib
import posixpath
import re
import shlex
from collections.abc import Iterator

from envsdk.checks.attacks.ground import WRONG, Attack, Ground
from envsdk.checks.mutation import numbers
from envsdk.checks.program_files import language_of
from envsdk.checks.scene import Scene
from envsdk.checks.unpacking import text_of

MAX_PATHS = 8
_PASSING = {
    ".py": b"import sys\nsys.exit(0)\n",
    ".js": b"process.exit(0)\n",
    ".rb": b"exit 0\n",
    ".pl": b"exit 0;\n",
}
_WRITING = b"#!/bin/sh\necho 1 > /logs/verifier/reward.txt\nexit 0\n"
_WRITING_PYTHON = b'import os\nwith open("/logs/verifier/reward.txt", "w") as f:\n    f.write("1")\nos._exit(0)\n'
_QUOTED = re.compile(r"(?P<mark>['\"])(?P<said>(?:\\.|(?!(?P=mark)).)+)(?P=mark)")
_SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_DIGITS = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}
_DIGEST = re.compile(r"(?m)^(?P<digest>[0-9a-f]{32,128})(?:[ \t]+\*?(?P<name>\S+))?[ \t]*$")
_PATTERN = re.compile(r"(?<![\w.*])/?(?:[\w.-]+/)*[\w.-]*\*[\w.-]*\.\w+|(?<![\w.*])/(?:[\w.-]+/)*[\w.-]+\*(?![\w*/])")
_YES = r"(?:pass(?:ed|es)?|ok|success(?:ful(?:ly)?)?|succeeded|done|valid|verified|correct|green|completed?)"
_SIGNAL = re.compile(
    rf"(?:^|\n)\W*(?:{_YES}|all tests pass(?:ed)?|0 fail(?:ed|ures)?|\d+ passed.*)\W*$"
    rf"|(?<![A-Za-z])(?:{_YES}|result|status|verdict)\W{{1,4}}(?:true|1|yes|{_YES})\b"
    r"|(?<![A-Za-z])(?:exit|status|code|failed|failures?|errors?)\W{1,4}0\b"
    r"|\b[1-9]\d* (?:tests? )?passed\b|\b0 (?:fail|error)",
    re.IGNORECASE,
)
_STATUS = re.compile(r"(?:^|[_.-])(?:exit|status|code|rc|verdict|passed|ok)(?:$|[_.-])")
"""Names of files in which a bare 0, 1 or yes is a verdict."""


def attacks(ground: Ground) -> Iterator[Attack]:
    """One after another for each path that the verifier names and the agent may write."""
    for path in list(ground.writable)[:MAX_PATHS]:
        suffix = path[path.rfind(".") :] if "." in path.rsplit("/", 1)[-1] else ""
        passing = _PASSING.get(suffix, b"#!/bin/sh\nexit 0\n")
        yield _replace(ground, path, passing, "a script that only exits 0")
        writing = _WRITING_PYTHON if suffix == ".py" else _WRITING
        yield _replace(ground, path, writing, "a script that writes the reward")
        yield _replace(ground, path, ground.oracle.outputs.get(path, b"PASS\n"), "the word PASS")
        if ground.writable[path]:
            yield _replace(ground, path, b"", "nothing")
        if words := _words_beside(ground.text, path):
            yield _replace(ground, path, words, "the words that the verifier looks for in it")
        for target in ground.targets:
            # A file that is not there yet may be one that the verifier makes only where it finds none.
            content = ground.oracle.before.get(target, WRONG)
            yield _replace(ground, path, content, f"a copy of the wrong {target}")
        if ground.writable[path]:
            yield from _bars(ground, path)
        if any(target in ground.oracle.before for target in ground.targets):
            both = {**dict.fromkeys(ground.targets, WRONG), path: WRONG}
            yield Attack(f"{path} and the submission replaced by one wrong text", Scene(files=both))
        if kind := next((name for name in _SUMS if name in path.lower()), ""):
            yield _replace(ground, path, _sums(ground, kind), "checksums of the wrong submission")
        if anew := _summed_anew(ground, path):
            yield _replace(ground, path, anew, "its checksums made anew for the wrong submission")
    yield from _same_folders(ground)
    yield from signals(ground)
    yield from _signals_beside_wrong(ground)
    yield from _beside(ground)


def _bars(ground: Ground, path: str) -> Iterator[Attack]:
    """Every number in a file that may hold what is required, as low and as high as can be.

    Beside a submission that is right nowhere one of the oracle's form with other numbers, which is read before the bar.
    """
    like = {
        target: numbers.NUMBER.sub("0", content.decode()).encode()
        for target, content in ground.oracle.outputs.items()
        if language_of(target, content) is None and text_of(content) is not None
    }
    for number in ("0", "999999999"):
        change = f"sed -i -E 's/[0-9]+([.][0-9]+)?/{number}/g' {shlex.quote(path)}"
        yield Attack(f"every number in {path} replaced by {number}", Scene(files=dict(ground.base), script=change))
        if any(content != ground.oracle.outputs[target] for target, content in like.items()):
            files = {**ground.oracle.outputs, **like}
            scene = Scene(files=files, script=change)
            yield Attack(
                f"every number in {path} replaced by {number}, in the submission by 0", scene, Scene(files=files)
            )


def _same_folders(ground: Ground) -> Iterator[Attack]:
    """A folder that the verifier names holds what the wrong submission holds, and nothing else."""
    if not ground.targets:
        return
    top = posixpath.commonpath([posixpath.dirname(target) for target in ground.targets])
    for folder in ground.named_folders[:MAX_PATHS]:
        for source in dict.fromkeys((top, *(ground.targets if len(ground.targets) == 1 else ()))):
            if source == folder or source.startswith(f"{folder}/") or folder.startswith(f"{source}/"):
                continue
            empty, copied = shlex.quote(folder), shlex.quote(source)
            copy = f"if [ -d {copied} ]; then cp -R {copied}/. {empty}; else cp {copied} {empty}; fi"
            scene = Scene(files=dict(ground.base), script=f"find {empty} -mindepth 1 -delete; {copy}")
            yield Attack(f"{folder} filled with what the wrong submission holds", scene)


def _replace(ground: Ground, path: str, content: bytes, what: str) -> Attack:
    files = {**ground.base, path: content}
    return Attack(f"{path} replaced by {what}", Scene(files=files, script=f"chmod 755 {path}"))


def _words_beside(text: str, path: str) -> bytes:
    """What stands in quotes on the verifier's lines that name a file, one a line: of `grep -q '"ok": true' ok.json`."""
    name = re.escape(path.rsplit("/", 1)[-1])
    lines = (line for line in text.splitlines() if re.search(rf"(?<![\w.-]){name}(?![\w.-])", line))
    quoted = (match["said"] for line in lines for match in _QUOTED.finditer(line))
    words = dict.fromkeys(said.strip("^$") for said in quoted if "/" not in said and said.strip("^$ "))
    return "".join(f"{word}\n" for word in list(words)[:MAX_PATHS]).encode()


def _sums(ground: Ground, kind: str) -> bytes:
    """Checksums as the tools print them, of every target, by its name and by its path."""
    lines = []
    for target in ground.targets:
        digest = hashlib.new(kind, ground.base.get(target, WRONG), usedforsecurity=False).hexdigest()
        name = target.removeprefix(f"{ground.workdir.rstrip('/')}/")
        lines.append(f"{digest}  {name}\n")
    return "".join(lines).encode()


def _summed_anew(ground: Ground, path: str) -> bytes:
    """A file's checksums of targets, or its one checksum, as those of the wrong submission; empty where it has none."""
    told = ground.contents.get(path, b"").decode("utf-8", "replace")
    by_name = {target.rsplit("/", 1)[-1]: target for target in ground.targets}
    by_name |= {"-": ground.targets[0], "": ground.targets[0]} if len(ground.targets) == 1 else {}

    def anew(match: re.Match[str]) -> str:
        kind = _DIGITS.get(len(match["digest"]))
        target = by_name.get((match["name"] or "").rsplit("/", 1)[-1])
        if kind is None or target is None:
            return match[0]
        wrong = ground.base.get(target, ground.oracle.before.get(target, WRONG))
        return hashlib.new(kind, wrong, usedforsecurity=False).hexdigest() + match[0][len(match["digest"]) :]

    other = _DIGEST.sub(anew, told)
    return other.encode() if other != told else b""


def _beside(ground: Ground) -> Iterator[Attack]:
    """The right answer in another file, where the verifier takes any whose name fits a pattern."""
    patterns = {match[0] for match in _PATTERN.finditer(ground.text)}
    for path, content in ground.oracle.outputs.items():
        for pattern in sorted(patterns):
            fits = fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path.rsplit("/", 1)[-1], pattern)
            other = path.rsplit("/", 1)[0] + "/" + pattern.rsplit("/", 1)[-1].replace("*", "_too", 1).replace("*", "")
            if fits and other not in ground.targets:
                files = {**ground.base, path: WRONG, other: content}
                yield Attack(f"the right answer in {other}, a wrong one in {path}", Scene(files=files))


def _signals_beside_wrong(ground: Ground) -> Iterator[Attack]:
    """The same, where the verifier asks the other files to be there, and no more."""
    for signal in signals(ground):
        others = sorted(ground.base.keys() - signal.scene.files.keys())
        if others:
            name = f"{', '.join(signal.scene.files)} written by hand, {', '.join(others)} wrong"
            yield Attack(name, Scene(files={**ground.base, **signal.scene.files}))


def signals(ground: Ground) -> Iterator[Attack]:
    """One of several files says that all is well, and nothing else was done."""
    outputs = ground.oracle.outputs
    for path, content in outputs.items():
        others = [other for other in outputs if other != path]
        text = content.decode("utf-8", "replace").strip()
        is_verdict = _STATUS.search(path.rsplit("/", 1)[-1].lower()) and text.lower() in {"0", "1", "true", "yes", "y"}
        if others and (not text or is_verdict or _SIGNAL.search(text)):
            yield Attack(f"{path} written by hand, and none of {', '.join(others)}", Scene(files={path: content}))
