"""What an image is made of, where it is named without a version: another day makes another image of the same task."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.shell import commands

_FILE = "environment/Dockerfile"
_PART = re.compile(r"&&|\|\||;|\n")
_PIP = re.compile(r"^(?:\S*python[0-9.]*\s+-m\s+)?(?:uv\s+)?pip[0-9.]*\s+install\s+(?P<rest>.*)$")
_NPM = re.compile(r"^(?:npm\s+(?:install|i|add)|yarn\s+(?:global\s+)?add|pnpm\s+add)\s+(?P<rest>.*)$")
_CARGO = re.compile(r"^cargo\s+install\s+(?P<rest>.*)$")
_LATEST = re.compile(r"^go\s+install\s+\S+@latest\b")
_PIPED = re.compile(r"\b(?:curl|wget)\b[^|]*\|\s*(?:sudo\s+)?(?:ba|da)?sh\b")
_FROM = re.compile(r"^FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_TOOLS = frozenset({"pip", "setuptools", "wheel", "uv", "build", "npm", "pnpm", "yarn", "corepack"})
"""Installers themselves: which of them is there changes nothing in what they install."""
_TAKES_VALUE = frozenset(
    {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "--prefix", "--root", "--python"}
)
_LISTED = frozenset({"-r", "--requirement", "-c", "--constraint", "-e", "--editable", "--require-hashes", "--no-index"})
"""What pins names elsewhere: a list, hashes, or a folder that came with the image."""
_ELSEWHERE = ("-", ".", "/", "$", "file:", "http:", "https:", "git+")
_ARCHIVE = re.compile(r"\.(?:whl|tgz|tar\.\w+|zip|gem)(?:\[|$)")


def rule(files: TaskFiles) -> Iterator[Fault]:
    """Installs, downloads and base images of ``environment/Dockerfile`` that are not pinned."""
    stages = {"scratch"}
    for line in commands(files.dockerfile):
        if base := _FROM.match(line.text):
            image = base["image"]
            if image.lower() not in stages and "$" not in image and _floats(image):
                yield _fault("unpinned_base", line.number, f"{image} names no version: give a tag or a digest")
            stages.add((base["stage"] or "").lower())
        elif line.text.upper().startswith("RUN "):
            for part in _PART.split(line.text[4:]):
                yield from _installs(part.strip(), line.number)


def _installs(part: str, number: int) -> Iterator[Fault]:
    words = re.sub(r"^(?:--\S+\s+|sudo\s+|env\s+|\w+=\S+\s+)+", "", part)
    if found := _PIP.match(words):
        for name in _unpinned_python(found["rest"]):
            yield _fault("unpinned_install", number, f"pip installs {name} in whatever version: write {name}==VERSION")
    elif found := _NPM.match(words):
        for name in _names(found["rest"]):
            if "@" not in name[1:] and name not in _TOOLS:
                yield _fault(
                    "unpinned_install", number, f"npm installs {name} in whatever version: write {name}@VERSION"
                )
    elif (found := _CARGO.match(words)) and not re.search(r"--version|--git|--path|@\d", found["rest"]):
        yield _fault("unpinned_install", number, "cargo installs whatever version: give --version")
    elif _LATEST.match(words):
        yield _fault("unpinned_install", number, "go installs @latest: name a version")
    elif _PIPED.search(part) and not re.search(r"\d+\.\d+", part):
        yield _fault(
            "unpinned_download", number, "runs whatever a download brings: name a version, or bring the file along"
        )


def _unpinned_python(rest: str) -> Iterator[str]:
    if set(rest.split()) & _LISTED:
        return
    for name in _names(rest):
        bare = re.split(r"[\[<>=~!;@ ]", name)[0]
        if not re.search(r"==|~=|<|@|/", name) and bare not in _TOOLS and bare not in {"", "."}:
            yield bare


def _names(rest: str) -> Iterator[str]:
    """Arguments that name packages: no options, no values of options, no paths, no redirections."""
    try:
        words = iter(shlex.split(rest, comments=True))
    except ValueError:
        return
    for word in words:
        if word in _TAKES_VALUE:
            next(words, None)
        elif re.match(r"\d?[<>|&]", word):
            return
        elif not (_ARCHIVE.search(word) or word.startswith(_ELSEWHERE) or "$" in word):
            yield word


def _floats(image: str) -> bool:
    tag = image.rpartition("/")[2]
    return "@" not in image and (":" not in tag or tag.endswith(":latest"))


def _fault(code: str, number: int, what: str) -> Fault:
    return Fault(code, _FILE, number, what)
