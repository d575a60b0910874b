"""One image build in the engine: the context as a tar, the log to a file, an end in time."""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker.errors
import requests.exceptions
import urllib3.exceptions

from envsdk.sandboxes.buildkit import CONTEXT, ClassicDockerfile
from envsdk.sandboxes.context import Context
from envsdk.sandboxes.docker_engine import Engine
from envsdk.sandboxes.progress import Progress

NO_END = "no end after"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ENGINES_OWN = ("Step ", "--->", "Removing intermediate container ")


def build(engine: Engine, archive: bytes, tag: str, *, log: Path, build_s: float, progress: Progress) -> str:
    """Build and tag; returns what went wrong, or an empty string. Blocks for at most ``build_s`` seconds, about.

    The engine gives a build up when its reader hangs up, so the connection is the build's own and is closed at its end.
    """
    until = time.monotonic() + build_s
    client = engine.another_client(timeout_s=max(1, int(build_s)))
    answers: list[requests.Response] = []
    client.hooks["response"] = [lambda answer, *_args, **_kwargs: answers.append(answer)]
    failed = ""
    words: deque[str] = deque(maxlen=8)
    try:
        with log.open("w", encoding="utf-8") as lines:
            for event in client.build(
                fileobj=io.BytesIO(archive),
                custom_context=True,
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
                labels={"envsdk.kind": "image"},
                timeout=max(1, int(build_s)),  # its own default is none at all, whatever the client's
            ):
                _note(event, lines.write, progress)
                said = _plain(event.get("stream"))
                if said and not said.startswith(_ENGINES_OWN):
                    words.append(said)
                failed = _plain(event.get("error")) or failed
                if time.monotonic() > until:
                    return f"{NO_END} {build_s:.0f} s"
    except (urllib3.exceptions.ReadTimeoutError, requests.exceptions.Timeout, requests.exceptions.ConnectionError):
        return f"{NO_END} {build_s:.0f} s"
    except docker.errors.APIError as error:
        return str(error.explanation or error)
    finally:
        for answer in answers:
            answer.close()
        client.close()
    wrote = " ".join(words)[-300:]
    return f"{failed}; it wrote: {wrote}" if failed and wrote else failed


def _note(event: dict[str, Any], write: Callable[[str], object], progress: Progress) -> None:
    text = _plain(event.get("stream") or event.get("error") or event.get("status"))
    if text:
        write(f"{text}\n")
        progress(text)


def _plain(said: object) -> str:
    """Without the colours that the engine puts around what a build wrote to its stderr."""
    return _COLOUR.sub("", str(said or "")).strip()


def context_archive(context: Context, dockerfile: ClassicDockerfile) -> bytes:
    """The build context as a tar with this Dockerfile and its own sources: the same bytes for the same content."""
    out = io.BytesIO()
    under = CONTEXT if dockerfile.own else ""
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in context.files:
            if name != "Dockerfile" or under:
                _add(tar, context.root / name, under + name)
        for name, source in dockerfile.own.items():
            content = (context.root / source.of).read_bytes() if source.of else source.content
            _add_file(tar, content, name, mode=source.mode)
        _add_file(tar, dockerfile.text.encode(), "Dockerfile", mode=0o644)
    return out.getvalue()


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    info = tar.gettarinfo(path, arcname=name)
    info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
    if info.isreg():
        with path.open("rb") as content:
            tar.addfile(info, content)
    else:
        tar.addfile(info)


def _add_file(tar: tarfile.TarFile, content: bytes, name: str, *, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))
