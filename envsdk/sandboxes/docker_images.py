"""Images of the Docker engine: found by name or alias, or built once from a Dockerfile and cached by content.

A built image is named ``envsdk-task:<digest of the build context and its bases>``, so that equal environments share it
and an edit makes a new one. Building happens behind a file lock, logs to the data folder, and never reaches a network
that the engine does not have. The pinned reference is the engine's content id (``sha256:...``).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import AsyncFileLock, Timeout

from envsdk.errors import SandboxError
from envsdk.home import images_dir
from envsdk.sandboxes import aliases
from envsdk.sandboxes.buildkit import classic
from envsdk.sandboxes.context import Context, read_context
from envsdk.sandboxes.docker_build import NO_END, build, context_archive
from envsdk.sandboxes.docker_engine import Engine
from envsdk.sandboxes.here_documents import plain
from envsdk.sandboxes.progress import Progress, silent

REPOSITORY = "envsdk-task"
SETUP_REPOSITORY = "envsdk-setup"


def _used_file(tag: str) -> Path:
    return images_dir() / "builds" / f"{tag.replace(':', '-')}.used"


def note_use(tag: str) -> None:
    """Remember that an image was used now."""
    path = _used_file(tag)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def used_at(tag: str, made_at: float) -> float:
    """When an image was used last, in Unix seconds, as far as this data folder knows."""
    try:
        return max(made_at, _used_file(tag).stat().st_mtime)
    except FileNotFoundError:
        return made_at


class DockerImages:
    """Resolves and builds. ``origin`` remembers, for each pinned reference, where it came from."""

    def __init__(self, engine: Engine, extra: Mapping[str, str], progress: Progress | None = None) -> None:
        self._engine = engine
        self._extra = {**aliases.from_environment(), **extra}
        self._progress = progress or silent
        self._configs: dict[str, dict[str, Any]] = {}
        self.origin: dict[str, dict[str, str]] = {}

    async def ensure(self, environment: Path | None, image: str | None, *, build_s: float) -> str:
        """The pinned reference of an image name, or of a folder's Dockerfile. Raises `SandboxError`."""
        if environment is not None and (environment / "Dockerfile").is_file():
            return await self._built(environment, build_s)
        if image is None:
            raise SandboxError(
                "the task names no image and has no environment/Dockerfile",
                code="no_image",
                hint="give it one of the two",
            )
        pinned, used = await self._found(image, build_s)
        self._note(pinned, {"image": image, **({"alias": used} if used != image else {})})
        return pinned

    async def find_prepared(self, key: str, base: str) -> str | None:
        """The pinned reference of the image that a set-up over ``base`` left, if it is here."""
        here = await self.inspect(f"{SETUP_REPOSITORY}:{key}")
        if here is None:
            return None
        note_use(f"{SETUP_REPOSITORY}:{key}")
        pinned = str(here["Id"])
        self._note(pinned, {**self.origin.get(base, {"image": base}), "setup": key, "image_digest": pinned})
        return pinned

    async def inspect(self, reference: str) -> dict[str, Any] | None:
        """The engine's description of a local image, or `None`."""
        try:
            return dict(await self._engine.call(self._engine.api.inspect_image, reference))
        except SandboxError as error:
            if error.code == "no_such_object":
                return None
            raise

    async def config(self, reference: str) -> dict[str, Any]:
        """What a local image says about how to run it; remembered. Raises `SandboxError` (``image_not_found``)."""
        if reference not in self._configs:
            described = await self.inspect(reference)
            if described is None:
                raise SandboxError(
                    f"image {reference!r} is not on this machine",
                    code="image_not_found",
                    hint="call ensure_image first",
                    where=reference,
                )
            self._configs[reference] = dict(described.get("Config") or {})
        return self._configs[reference]

    async def _found(self, wanted: str, pull_s: float) -> tuple[str, str]:
        """``(pinned, the name that was used)``."""
        name = aliases.look_up(wanted, self._extra) or wanted
        if (here := await self.inspect(name)) is not None:
            return str(here["Id"]), name
        why = await self._pull(name, pull_s)
        if (here := await self.inspect(name)) is not None:
            return str(here["Id"]), name
        for fallback in aliases.look_up(wanted, aliases.FALLBACKS) or ():
            if (here := await self.inspect(fallback)) is not None:
                return str(here["Id"]), fallback
        raise SandboxError(
            f"image {wanted!r} is not on this machine and could not be pulled: {why}",
            code="image_not_found",
            hint=f"build or load it, or map it to a local one: {aliases.VARIABLE}={wanted}=LOCAL",
            where=wanted,
        )

    async def _pull(self, name: str, pull_s: float) -> str:
        if name.startswith("sha256:"):
            return "a content id cannot be pulled"
        try:
            async with asyncio.timeout(min(pull_s, 120.0)):
                await self._engine.call(self._engine.api.pull, name)
        except SandboxError as error:
            return error.message
        except TimeoutError:
            return "the registry did not answer in time"
        return "the engine says it pulled it, and does not have it"

    async def _built(self, environment: Path, build_s: float) -> str:
        context = await asyncio.to_thread(read_context, environment)
        bases: dict[str, tuple[str, str]] = {}
        for wanted in aliases.wanted_bases(plain(context.dockerfile).text):
            bases[wanted] = await self._found(wanted, build_s)
        identity = json.dumps(
            [context.digest, {wanted: pinned for wanted, (pinned, _) in bases.items()}], sort_keys=True
        )
        tag = f"{REPOSITORY}:{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
        origin = {
            "dockerfile": context.digest,
            **{f"base {wanted}": f"{name}@{pinned}" for wanted, (pinned, name) in bases.items()},
        }
        here = await self.inspect(tag)
        if here is None:
            folder = images_dir() / "builds"
            folder.mkdir(parents=True, exist_ok=True)
            lock = AsyncFileLock(folder / f"{tag.rpartition(':')[2]}.lock", timeout=build_s)
            try:
                async with lock:
                    here = await self.inspect(tag)
                    if here is None:
                        used = {wanted: name for wanted, (_, name) in bases.items() if name != wanted}
                        log = folder / f"{tag.rpartition(':')[2]}.log"
                        await self._build(context, used, tag, build_s, log)
                        here = await self.inspect(tag)
            except Timeout as error:
                raise SandboxError(
                    f"another process held the build of {environment} for {build_s:.0f} s",
                    code="build_timeout",
                    where=str(environment),
                ) from error
        if here is None:
            raise SandboxError("the build ended well and left no image", code="build_failed", where=str(environment))
        note_use(tag)
        pinned = str(here["Id"])
        self._note(pinned, {"image": tag, **origin})
        return pinned

    async def _build(self, context: Context, used: Mapping[str, str], tag: str, build_s: float, log: Path) -> None:
        dockerfile = plain(context.dockerfile)  # the engine's own builder, which the API speaks to, knows none
        readable = classic(aliases.rewrite(dockerfile.text, used), dockerfile.files, context)
        archive = await asyncio.to_thread(context_archive, context, readable)
        failed = await self._engine.call(
            build, self._engine, archive, tag, log=log, build_s=build_s, progress=self._progress
        )
        if failed:
            raise SandboxError(
                f"the Dockerfile does not build: {failed}",
                code="build_timeout" if failed.startswith(NO_END) else "build_failed",
                hint=f"the whole log is in {log}",
                where=str(context.root),
            )

    def _note(self, pinned: str, origin: dict[str, str]) -> None:
        self.origin[pinned] = {"image_digest": pinned, **origin}
