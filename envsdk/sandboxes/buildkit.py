"""What only BuildKit reads of a Dockerfile, for builders that are none: the engine's API has one, bubblewrap has one.

``--chmod=OCTAL`` of COPY and ADD is done for files that the context holds, ``--link`` is left out, for they come to the
same. All else raises `SandboxError` (``needs_buildkit``) before anything is built, with the line and what to write
instead. Here-documents are another file's matter (`envsdk.sandboxes.here_documents`).
"""

from __future__ import annotations

import json
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envsdk.errors import SandboxError
from envsdk.sandboxes.context import Context, matching
from envsdk.sandboxes.dockerfile import joined

OWN = ".envsdk/"
"""Where the sources lie that a rewritten Dockerfile brings along."""
CONTEXT = "context/"
"""Where all others lie then, so that none of its own is copied with them."""
_FLAGS = re.compile(r"(?:--\S+\s+)*")
_OCTAL = re.compile(r"[0-7]{3,4}")
_CLASSIC = {"--from", "--chown", "--chmod", "--link"}
_MOUNTS = {
    "bind": "COPY the files, use them, and remove them in the same RUN",
    "tmpfs": "use a folder, and remove it in the same RUN",
    "secret": "put what it fetches beside the Dockerfile, and COPY it: a build is given no secret",
    "ssh": "put what it fetches beside the Dockerfile, and COPY it: a build is given no key",
}
_CACHE = "leave the mount out; keep the image small by pip install --no-cache-dir, or rm -rf /var/lib/apt/lists/*"
_INSTEAD = {
    "--network": "leave it out: a build has a network",
    "--security": "leave it out: a build has no more rights than a container",
    "--parents": "name the target of each file",
    "--exclude": "name what is not wanted in .dockerignore",
    "--checksum": "download it beside the Dockerfile, and COPY it",
    "--keep-git-dir": "clone it beside the Dockerfile, and COPY it",
    "--unpack": "leave it out: ADD unpacks the archives of the context",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a rewritten Dockerfile's own: ``content``, or that of the context's file ``of``."""

    mode: int = 0o644
    content: bytes = b""
    of: str = ""


@dataclass(frozen=True, slots=True)
class ClassicDockerfile:
    """A Dockerfile that any builder reads; with ``own`` sources, by path, all of the context lies under `CONTEXT`."""

    text: str
    own: Mapping[str, Source]


@dataclass(frozen=True, slots=True)
class _Instruction:
    """``first`` and ``after`` number its lines, from 0; ``flags`` and the text ``rest`` behind them."""

    first: int
    after: int
    word: str
    flags: tuple[str, ...]
    rest: str

    @property
    def words(self) -> list[str]:
        """Sources and target of a COPY or ADD. Raises ValueError for an open quote."""
        return list(json.loads(self.rest)) if self.rest.startswith("[") else shlex.split(self.rest)

    def flag(self, name: str) -> str:
        """What a flag is set to; empty where it is not given."""
        return next((flag.partition("=")[2] for flag in self.flags if flag.startswith(f"{name}=")), "")


def require_classic(text: str, context: Context) -> None:
    """Raise `SandboxError` (``needs_buildkit``) for the first instruction that no builder here does."""
    for instruction in _instructions(text):
        _require(instruction, context)


def classic(text: str, written: Mapping[str, bytes], context: Context) -> ClassicDockerfile:
    """Rewrite what can be done otherwise; ``written`` are the sources that the Dockerfile holds, by path.

    Lines keep their numbers. Raises as `require_classic`.
    """
    require_classic(text, context)
    own = {OWN + path: Source(content=content) for path, content in written.items()}
    copies = [found for found in _instructions(text) if found.word in {"COPY", "ADD"}]
    for found in copies:
        if mode := found.flag("--chmod"):
            own |= _with_mode(found, int(mode, 8), written, context)
    lines = text.split("\n")
    for found in copies:
        sources = _sources(found)
        if own and sources and not found.flag("--from"):
            words = json.dumps([*(_moved(found, source, written) for source in sources), found.words[-1]])
        else:
            words = found.rest
        flags = [flag for flag in found.flags if flag.partition("=")[0] not in {"--chmod", "--link"}]
        if words != found.rest or len(flags) < len(found.flags):
            line = " ".join([found.word, *flags, words])
            lines[found.first : found.after] = [line, *[""] * (found.after - found.first - 1)]
    return ClassicDockerfile("\n".join(lines), own)


def _with_mode(found: _Instruction, mode: int, written: Mapping[str, bytes], context: Context) -> dict[str, Source]:
    own = {}
    for source in _sources(found):
        if source in written:
            own[_place(found, source)] = Source(mode, content=written[source])
        else:
            own |= {_place(found, name): Source(mode, of=name) for name in matching(context.files, source)}
    return own


def _moved(found: _Instruction, source: str, written: Mapping[str, bytes]) -> str:
    """Where a source lies in the context of a rewritten Dockerfile."""
    if found.flag("--chmod"):
        return _place(found, source)
    if source in written:
        return OWN + source
    return source if "://" in source else CONTEXT + source


def _place(found: _Instruction, source: str) -> str:
    return f"{OWN}{found.first + 1}/{source.lstrip('/')}"


def _sources(found: _Instruction) -> list[str]:
    try:
        return found.words[:-1]
    except ValueError:  # an open quote: the builder says so, with its line
        return []


def _require(found: _Instruction, context: Context) -> None:
    for flag in found.flags:
        name, _, value = flag.partition("=")
        if found.word == "RUN":
            kind = re.search(r"(?:^|,)type=(\w+)", value)
            instead = _MOUNTS.get(kind[1] if kind else "bind", _CACHE) if name == "--mount" else _INSTEAD.get(name)
            raise _needs(context, found, f"RUN {flag}", instead or "leave it out")
        if name not in _CLASSIC:
            raise _needs(context, found, f"{found.word} {name}", _INSTEAD.get(name, "leave it out"))
    if mode := found.flag("--chmod"):
        what = f"{found.word} --chmod"
        if found.flag("--from"):
            raise _needs(context, found, f"{what} of another stage", f"{found.word} without it, then RUN chmod {mode}")
        if not _OCTAL.fullmatch(mode):
            raise _needs(context, found, f"{what}={mode}", "write the mode as a number, such as 755")
        for source in _sources(found):
            if "://" in source or "$" in source:
                raise _needs(context, found, f"{what} of {source}", "name the file, or RUN chmod after it")
            for name in matching(context.files, source):
                _require_file(found, what, name, context)


def _require_file(found: _Instruction, what: str, name: str, context: Context) -> None:
    path = context.root / name
    if path.is_dir() and not path.is_symlink():
        raise _needs(
            context, found, f"{what} of the folder {name or '.'}", f"{found.word} without it, then RUN chmod -R"
        )
    if path.is_symlink():
        raise _needs(context, found, f"{what} of the link {name}", f"{found.word} without it, then RUN chmod")
    if found.word == "ADD" and tarfile.is_tarfile(path):
        raise _needs(context, found, f"{what} of the archive {name}", "ADD without it, then RUN chmod -R")


def _needs(context: Context, found: _Instruction, what: str, instead: str) -> SandboxError:
    return SandboxError(
        f"the Dockerfile does not build: line {found.first + 1}: {what} needs BuildKit, which is not used here",
        code="needs_buildkit",
        hint=instead,
        where=str(context.root),
    )


def _instructions(text: str) -> Iterator[_Instruction]:
    """Every RUN, COPY and ADD of a Dockerfile without here-documents."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        first = at
        line, at = joined(lines, at)
        word, _, rest = line.partition(" ")
        if word.upper() not in {"RUN", "COPY", "ADD"}:
            continue
        rest = rest.strip()
        flags = _FLAGS.match(rest)
        assert flags is not None
        yield _Instruction(first, at, word.upper(), tuple(flags[0].split()), rest[flags.end() :])
