"""``leak``: neither verifier, nor oracle, nor answer can be read in the image, the environment or the prompt.

Looked at: every small text file that the agent can read and no package of the distribution owns. A file that the
instruction names is an input and may say what it likes. Nothing is judged by its name alone: a stub may be called
``solution.py``.
"""

from __future__ import annotations

import base64
import codecs
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from envsdk.checks.check import Check, Finding, does_not_apply, fails, passes
from envsdk.checks.compiled_remains import compiled_remains
from envsdk.checks.git_future import future_commits
from envsdk.checks.image_files import image_view
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.mutation.sources import source_language
from envsdk.checks.opening import SOLVE
from envsdk.checks.program_files import language_of
from envsdk.checks.stage import OracleRun, Stage
from envsdk.checks.unpacking import SEPARATOR, outer

_LONG = 40
_EXAMPLE = re.compile(r"\b(?:for example|e\.g\.|for instance|looks? like|like this|sample output)", re.IGNORECASE)
_NEAR = 40
_TELLING_LINE = 24
_SHOWN_LEAST = 12
_MAX_ENCODED = 4096
_SOLVED = re.compile(r"oracle|solution|answer|\.(?:enc|gpg|age)$", re.IGNORECASE)
_SCRIPT_NOISE = re.compile(r"^(?:#.*|set [-+].*|\s*)$")
_CALLED = (
    r"(?<![a-z])(?:answers?|solutions?|expected|oracle|golden|reference|(?:checker|tests?|grader|verifier) expects?)"
    r"(?![a-z])"
)
_GRADING = re.compile(r"grad(?:e|ing)|reference|judge", re.IGNORECASE)
_TELLING = re.compile(r"answer|solution|expected|oracle|secret|flag|truth|golden|key", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that the agent must not find: what it is, and its stripped text."""

    what: str
    text: str

    @property
    def is_telling(self) -> bool:
        """Long enough that meeting it elsewhere is no chance."""
        return len(self.text) >= _LONG or self.text.count("\n") > 2


async def _examine(stage: Stage) -> Finding:
    spec = stage.task.spec
    run = await stage.passing_oracle()
    files = read_task_files(stage.task)
    hidden = [
        *(Secret(f"the verifier's {path}", _body(text)) for path, text in files.under("tests").items()),
        *(Secret(f"the oracle's {path}", _body(text)) for path, text in files.under("solution").items()),
    ]
    hidden = [secret for secret in hidden if secret.is_telling]
    found = [("the instruction", secret.what) for secret in hidden if secret.text in spec.instruction]
    answers = list(_answers(run)) if run is not None else []
    found += [("the instruction", secret.what) for _, secret in answers if _is_told(secret.text, spec.instruction)]
    if stage.has_box:
        tests = "\n".join(files.under("tests").values())
        view = await image_view(stage)
        found += list(_in_files(view.files, stage, hidden, answers, tests))
        found += list(_of_the_oracle([*view.files, *view.others], stage, files.texts.get(f"solution/{SOLVE}", "")))
        found += list(_in_environment(view.environment, answers))
        remains = await compiled_remains(stage, stage.artifacts, run.before if run is not None else {})
        found += [(path, "the compiled form of what is to be written") for path in remains]
        future = await future_commits(stage, view.repositories)
        found += [(path, f"commits beyond HEAD: {', '.join(commits)}") for path, commits in future.items()]
    elif run is None and not hidden:
        return does_not_apply("no box and no oracle: there is nothing that could be read")
    if not found:
        return passes("nothing of verifier, oracle or answer was found")
    place, what = found[0]
    return fails(f"{place} holds {what}", leaks=[{"where": place, "what": what} for place, what in found[:20]])


def _body(text: str) -> str:
    """A script without the lines that every script has."""
    return "\n".join(line for line in text.splitlines() if not _SCRIPT_NOISE.match(line)).strip()


def _answers(run: OracleRun) -> Iterator[tuple[str, Secret]]:
    for path, content in run.outputs.items():
        text = content.decode("utf-8", "replace").strip()
        if text and content != run.before.get(path):
            yield path, Secret(f"the answer for {path}", text)


def _in_files(
    image: dict[str, str], stage: Stage, hidden: list[Secret], answers: list[tuple[str, Secret]], tests: str
) -> Iterator[tuple[str, str]]:
    artifacts = {path for path, _ in answers} | set(stage.artifacts)
    lines = list(_telling_lines(tests, answers))
    for path, text in image.items():
        bare = text.strip()
        if not bare:
            continue
        if path.startswith("/logs/verifier/reward."):
            yield path, "a reward from the start"
            continue
        is_given = is_input(path, stage)
        told = [secret for secret in hidden if secret.text in bare and not (is_given and _is_copy(secret, bare))]
        yield from ((path, secret.what) for secret in told)
        if path in artifacts or is_given:
            if _is_aside(path, stage):
                yield from ((path, secret.what) for _, secret in answers if _row_by_row(secret.text, bare))
            continue
        yield from ((path, secret.what) for _, secret in answers if _gives_away(path, bare, secret, tests))
        yield from ((path, "a line of the verifier with the answer in it") for line in lines if line in bare)


def _telling_lines(tests: str, answers: list[tuple[str, Secret]]) -> Iterator[str]:
    """Lines of the verifier, long enough to be no chance, that hold an answer of one line as a word."""
    words = [secret.text for _, secret in answers if len(secret.text) >= 3 and "\n" not in secret.text]
    for line in {line.strip() for line in tests.splitlines()}:
        if len(line) >= _TELLING_LINE and any(_as_word(word, line) for word in words):
            yield line


def _of_the_oracle(paths: list[str], stage: Stage, solve: str) -> Iterator[tuple[str, str]]:
    """Files of the image that the oracle works from, by a telling name, and the instruction does not speak of."""
    artifacts = set(stage.artifacts)
    for path in paths:
        name = posixpath.basename(path)
        if name in solve and _SOLVED.search(path) and path not in artifacts and not is_input(path, stage):
            yield path, "what the oracle's script takes its solution from"


def _is_copy(secret: Secret, bare: str) -> bool:
    """The verifier keeps a copy of an input."""
    return secret.text == bare and not secret.what.endswith("tests/test.sh")


def _is_aside(path: str, stage: Stage) -> bool:
    """A part of an archive or data base, with a telling name that the instruction does not speak of."""
    _, mark, part = path.partition(SEPARATOR)
    is_spoken_of = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", stage.task.spec.instruction) is not None
    return bool(mark) and not is_spoken_of and (_TELLING.search(part) or _GRADING.search(part)) is not None


def _row_by_row(answer: str, text: str) -> bool:
    """Every line of the answer has its words in one line of the text."""
    rows = [set(re.findall(r"[\w.]+", line)) for line in text.splitlines()]
    wanted = [set(re.findall(r"[\w.]+", line)) for line in answer.splitlines() if line.strip()]
    return len(wanted) > 1 and all(any(words <= row for row in rows) for words in wanted)


def _gives_away(path: str, bare: str, secret: Secret, tests: str) -> bool:
    """The file is the answer, holds a long one, or has a telling name and holds it as a word."""
    if len(secret.text) >= 3 and secret.text in _decoded(bare) and (_TELLING.search(path) or len(secret.text) >= 8):
        return True
    if secret.text == bare:
        return len(secret.text) > 1 or path in tests
    if secret.is_telling:
        return secret.text in bare
    return (len(secret.text) >= 3 and bool(_TELLING.search(path)) and _as_word(secret.text, bare)) or _is_called(
        secret.text, bare
    )


def _is_called(answer: str, text: str) -> bool:
    """A line says a word for an answer and then this one, soon; or, of two signs alone, by a mark of equality."""
    if "\n" in answer or len(answer) < 2:
        return False
    between = r"[^\n]{0,40}?" if len(answer) > 2 else r"(?:[ _]\w+){0,2}[\"'`]?\s*(?:[:=]+|\bis\b)\s*[\"'`]?"
    said = rf"{_CALLED}{between}(?<![\w.-]){re.escape(answer)}(?![\w.])"
    return re.search(said, text, re.IGNORECASE) is not None


def _is_told(answer: str, instruction: str) -> bool:
    """The instruction says what the answer is, not under a condition."""
    told = (
        r"(?<!if )(?<!when )(?<!whether )\bthe (?:right |correct |final )?(?:answer|solution) is:?\s*"
        rf"[`\"']?{re.escape(answer)}(?!\w)"
    )
    return len(answer) > 1 and (
        re.search(told, instruction, re.IGNORECASE) is not None or _is_shown(answer, instruction)
    )


def _is_shown(answer: str, instruction: str) -> bool:
    """The example that the instruction gives of the form is the answer itself, white space aside."""
    bare = "".join(answer.split())
    shown = (re.sub(r"\s+", "", instruction[match.end() :]) for match in _EXAMPLE.finditer(instruction))
    return len(bare) >= _SHOWN_LEAST and any(bare in text[: len(bare) + _NEAR] for text in shown)


def _decoded(bare: str) -> Iterator[str]:
    """A short text read backwards, as base64, as hexadecimal digits, and with its letters rotated."""
    if len(bare) > _MAX_ENCODED:
        return
    yield bare[::-1]
    yield codecs.encode(bare, "rot13")
    for decode in (base64.b64decode, bytes.fromhex):
        try:
            yield decode(bare).decode("utf-8").strip()
        except ValueError:
            continue


def is_input(path: str, stage: Stage) -> bool:
    """The instruction names the file, or a folder that it lies in; of what lies in an archive, the archive."""
    instruction = stage.task.spec.instruction
    path = outer(path)
    name = posixpath.basename(path)
    if path in instruction or ("." in name and _is_spoken_of(path, name, instruction)):
        return True
    folder = posixpath.dirname(path)
    while folder not in {"/", ""}:
        if re.search(re.escape(folder) + r"(?![\w-]|\.\w|/[\w.])", instruction):
            return True
        folder = posixpath.dirname(folder)
    return False


def _is_spoken_of(path: str, name: str, instruction: str) -> bool:
    """By its name, or by the end of its path; of programs another file of that name is another file."""
    said = re.findall(rf"(?<![\w.-])(?:[\w.-]*/)*{re.escape(name)}(?![\w-])", instruction)
    return any(path.endswith("/" + word.lstrip("./")) or not _is_program(path) for word in said)


def _is_program(path: str) -> bool:
    return source_language(path) is not None or language_of(path, b"") is not None


def _as_word(answer: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w.])", text) is not None


def _in_environment(environment: dict[str, str], answers: list[tuple[str, Secret]]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        for _, secret in answers:
            same = secret.text == value.strip()
            is_all = same and (_TELLING.search(name) or len(secret.text) >= 4)
            if is_all or (secret.is_telling and secret.text in value) or _is_called(secret.text, f"{name}: {value}"):
                yield f"the variable {name}", secret.what


CHECK = Check(
    id="leak",
    question="Can verifier, oracle or answer be read where the agent works?",
    fix="keep what judges and what solves under tests/ and solution/, which the agent never sees; strip the history",
    examine=_examine,
    runs_verifier=False,
)
