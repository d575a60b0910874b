"""Right variations: other white space, other order, other spelling, where the instruction leaves it open."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from envsdk.checks.mutation import messages, renamed
from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.sources import source_language
from envsdk.checks.mutation.wording import Wording
from envsdk.checks.program_files import Language, language_of

_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w])(?!\.\d)")
_FORM = re.compile(
    r"decimal|digit|round|%\.|%\d|\bformat|precision|\bplaces\b|\bcents?\b|\bversion|\bstring\b|\bhundredth",
    re.IGNORECASE,
)
_COMPACT = re.compile(
    r"\bcompact\b|\bminif|\b(?:one|single|same) line\b|without (?:spaces|white ?space)|jsonl\b|\bjson lines\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"separated by (?:a |single )?commas?\b|\bcomma[- ]separated\b", re.IGNORECASE)
_SPACED = re.compile(r"\bspaces?\b|, ['\"`]|\bexample\b|\be\.g\.|\blike\b|\bas in\b", re.IGNORECASE)
_LABEL = re.compile(r"[A-Z][A-Za-z ]{0,30}:\s*(?=\S)")
_UNIT = re.compile(r"(?P<number>-?\d+(?:\.\d+)?) ?(?P<unit>[A-Za-z]+)\.?")
_LABELLED = re.compile(r"\bcolons?\b|: |\bform(?:at)?\b|\bexample\b|\be\.g\.|\blike\b|\btemplate\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}")
_PROSE = {"txt", "md", "log", "out", "text"}
_COMMENT: dict[Language, bytes] = dict.fromkeys(("python", "shell", "awk", "sed", "perl"), b"\n# a remark\n")
_COMMENT["javascript"] = b"\n// a remark\n"


def variants(
    outputs: Mapping[str, bytes],
    before: Mapping[str, bytes],
    wording: Wording,
    known_words: str,
    *,
    instruction: str = "",
    given: Collection[str] = (),
) -> Iterator[Mutant]:
    """Other right answers.

    Args:
        outputs: what the oracle wrote.
        before: what lay there at the start: such files are edited, and stay as they are beside the edit.
        wording: what the instruction demands.
        given: texts of the inputs.
        instruction: what it says of form and names.
        known_words: instruction and inputs: words that an answer may be expected to use.
    """
    for path, content in outputs.items():
        if path not in before and content.decode("utf-8", "replace") in given:
            continue  # a file that was moved or copied stays as it is
        language = language_of(path, content)
        if language is not None:
            yield Mutant(f"{path}: a remark at its end", {path: content.rstrip(b"\n") + _COMMENT[language]})
            if language == "python":
                yield from renamed.variant(path, content, instruction)
                yield from messages.variant(path, content, instruction)
            continue
        if source_language(path) is not None:
            yield Mutant(f"{path}: a remark at its end", {path: content.rstrip(b"\n") + b"\n// a remark\n"})
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if path not in before:
            is_prose = path.rsplit("/", 1)[-1].rpartition(".")[2] in _PROSE or "." not in path.rsplit("/", 1)[-1]
            plainer = _plainer(text, wording, known_words, instruction) if is_prose else ()
            for name, other in (*_texts(text, wording, known_words, is_prose=is_prose), *plainer):
                if other != text:
                    yield Mutant(f"{path}: {name}", {path: other.encode()})


def _texts(text: str, wording: Wording, known_words: str, *, is_prose: bool) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    if not text.strip():
        return
    if not wording.exact and "\r" not in text:  # line ends that were asked for
        yield "without a newline at its end", text.rstrip("\n")
        if len(lines) == 1:
            yield "with an empty line at its end", text.rstrip("\n") + "\n\n"
        yield from _other_json(text, is_compact=wording.alone or _COMPACT.search(known_words) is not None)
    if wording.any_order and len(lines) > 1:
        head = lines[: int(wording.head)]
        yield "its lines in another order", "\n".join([*head, *reversed(lines[len(head) :])]) + "\n"
    if wording.counting and _is_open_number(text, wording, known_words):
        yield "the number with a nought more behind its decimals", f"{text.strip()}0\n"
    if wording.counting and not wording.exact and is_prose and (bare := _bare_number(text, known_words)):
        yield "just the number, without words that the instruction does not ask for", f"{bare}\n"


def _plainer(text: str, wording: Wording, known_words: str, instruction: str) -> Iterator[tuple[str, str]]:
    """One line without heading or unit, a list without spaces, a choice as it was spelt: where no form is named."""
    line = text.strip()
    if wording.exact or len(line.splitlines()) != 1:
        return
    is_list = _LIST.search(instruction) is not None
    label = _LABEL.match(line)
    bare = line[label.end() :] if label else line
    if (unit := _UNIT.fullmatch(bare)) and unit["unit"].lower() not in known_words.lower():
        bare = unit["number"]
    is_asked = _LABELLED.search(instruction) is not None or (label and label[0].strip().lower() in known_words.lower())
    is_number = wording.counting and _NUMBER.fullmatch(bare) is not None
    if bare != line and not is_asked and (is_list or is_number):
        yield "without the words that the instruction does not ask for", f"{bare}\n"
    if not wording.case and (choice := _choice(line, instruction)):
        yield "the choice as the instruction spells it", f"{choice}\n"
    if is_list and ", " in line and not re.search(r",\S", line) and not _SPACED.search(instruction):
        yield "its list without spaces behind the commas", line.replace(", ", ",") + "\n"


def _choice(line: str, instruction: str) -> str:
    """Of a line that spells one of two words otherwise than ``yes or no`` of the instruction does: that spelling."""
    word = line.rstrip(".!").strip("\"'`")
    if word == "" or not word.isalpha() or line in instruction:
        return ""
    mark = "[`\"']?"
    offered = rf"\b(?P<one>{word}){mark} or {mark}\w+|\w+{mark} or {mark}(?P<two>{word})\b"
    found = {match["one"] or match["two"] for match in re.finditer(offered, instruction, re.IGNORECASE)}
    return found.pop() if len(found) == 1 else ""


def _is_open_number(text: str, wording: Wording, known_words: str) -> bool:
    """A number with decimals that was reckoned, not copied, and of whose form the instruction says nothing."""
    bare = text.strip()
    is_stated = wording.exact or wording.alone or wording.unit is not None or _FORM.search(known_words) is not None
    return re.fullmatch(r"-?\d+\.\d+", bare) is not None and not is_stated and bare not in known_words


def _other_json(text: str, *, is_compact: bool) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(text)
    except ValueError:
        return
    if isinstance(value, dict) and value:
        turned = dict(reversed(value.items()))
        yield "the same JSON in another order and spacing", json.dumps(turned, indent=3, ensure_ascii=False) + "\n"
    if isinstance(value, list) and value and not is_compact:
        yield "the same JSON in another spacing", json.dumps(value, indent=3, ensure_ascii=False) + "\n"


def _bare_number(text: str, known_words: str) -> str:
    """The one number of a sentence of which at least two words come from nowhere."""
    numbers = _NUMBER.findall(text)
    known = {word.lower() for word in _WORD.findall(known_words)}
    strange = [word for word in _WORD.findall(text) if word.lower() not in known]
    return numbers[0] if len(numbers) == 1 and len(strange) >= 2 and len(text.splitlines()) == 1 else ""
