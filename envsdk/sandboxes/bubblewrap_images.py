"""Images without an engine: file trees found, exported or built from Dockerfiles by running their steps in sandboxes.

An image name resolves to the tree ``envsdk.home.rootfs_dir(name)``, else, where a Docker engine has the image, to its
exported content. A Dockerfile is built step by step as root over its base; what the steps wrote is one layer, cached by
the digest of context and base. Builds have the machine's network, as an engine's have.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import AsyncFileLock, Timeout

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.home import rootfs_dir
from envsdk.sandboxes import aliases
from envsdk.sandboxes.base import Limits, SandboxSpec
from envsdk.sandboxes.bubblewrap_copy import copy_in, copy_tree, export_tree
from envsdk.sandboxes.bubblewrap_store import PREFIX, TreeImage
from envsdk.sandboxes.buildkit import require_classic
from envsdk.sandboxes.context import Context, read_context
from envsdk.sandboxes.dockerfile import Step, assignments, command_words, copy_of, expand, parse
from envsdk.sandboxes.here_documents import PlainDockerfile, plain
from envsdk.sandboxes.kept import DEFAULT_PATH
from envsdk.sandboxes.progress import Progress, silent

if TYPE_CHECKING:
    from envsdk.sandboxes.bubblewrap import BubblewrapProvider
    from envsdk.sandboxes.bubblewrap_box import BubblewrapSandbox

_READING = 2
"""How Dockerfiles are read, counted up when what they lead to changes: images of an older reading are built again."""
_BUILD_LIMITS = Limits(cpus=float(os.cpu_count() or 1), memory_mib=4096, disk_mib=16384, pids=2048)


@dataclass(slots=True)
class _Build:
    """What a Dockerfile has set so far."""

    env: dict[str, str]
    args: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @property
    def values(self) -> dict[str, str]:
        return {"PATH": DEFAULT_PATH, **self.args, **self.env}


class TreeImages:
    """Resolves and builds for one provider."""

    def __init__(
        self, provider: BubblewrapProvider, extra: Mapping[str, str], progress: Progress | None = None
    ) -> None:
        self._provider = provider
        self._store = provider.store
        self._extra = {**aliases.from_environment(), **extra}
        self._progress = progress or silent
        self._by_name: dict[str, TreeImage] = {}

    async def ensure(self, environment: Path | None, image: str | None, *, build_s: float) -> str:
        """The pinned reference of an image name, or of a folder's Dockerfile. Raises `SandboxError`."""
        if environment is not None and (environment / "Dockerfile").is_file():
            return (await self._built(environment, build_s)).reference
        if image is None:
            raise SandboxError(
                "the task names no image and has no environment/Dockerfile",
                code="no_image",
                hint="give it one of the two",
            )
        if image.startswith(PREFIX) and self._store.image(image) is not None:
            return image
        return (await self._found(image)).reference

    async def _found(self, wanted: str) -> TreeImage:
        if wanted in self._by_name:
            return self._by_name[wanted]
        own = aliases.look_up(wanted, self._extra) or wanted
        names = dict.fromkeys((own, *(aliases.look_up(wanted, aliases.FALLBACKS) or ())))
        for name in names:
            image = await asyncio.to_thread(self._from_tree, name, wanted) or await self._from_engine(name, wanted)
            if image is not None:
                self._by_name[wanted] = image
                return image
        raise SandboxError(
            f"image {wanted!r} has no file tree on this machine, and no engine here has it",
            code="image_not_found",
            hint=f"make setup, or map it to a local one: {aliases.VARIABLE}={wanted}=LOCAL",
            where=wanted,
        )

    def _from_tree(self, name: str, wanted: str) -> TreeImage | None:
        tree = rootfs_dir(name)
        if not (tree / "usr").is_dir():
            return None
        digest = hashlib.sha256(f"{name}\0{tree.resolve()}".encode())
        for witness in ("var/lib/dpkg/status", "lib/apk/db/installed", "etc/os-release", "etc/envsdk-base"):
            if (tree / witness).is_file():
                digest.update((tree / witness).read_bytes())
        return self._root_image(digest.hexdigest()[:32], tree, name, wanted, {})

    def _root_image(self, key: str, tree: Path, name: str, wanted: str, env: dict[str, str]) -> TreeImage:
        layer = f"r{key[:16]}"
        if os.geteuid() and tree != self._store.layer(layer):
            tree = self._own_copy(key, tree)
        if tree != self._store.layer(layer):
            self._store.link_layer(layer, tree)
        origin = {"image": wanted, "image_digest": f"{PREFIX}{key}", **({"alias": name} if name != wanted else {})}
        return self._store.save(TreeImage(id=key, layers=(layer,), env=env, origin=origin))

    def _own_copy(self, key: str, tree: Path) -> Path:
        """An ordinary user can stack only on files that are all his own."""
        target = self._store.layer(f"r{key[:16]}")
        if not target.is_dir():
            part = target.with_name(f".{target.name}.{os.getpid()}")
            copy_tree(tree, part)
            part.replace(target)
        return target

    async def _from_engine(self, name: str, wanted: str) -> TreeImage | None:
        try:
            from envsdk.sandboxes.docker_engine import Engine

            engine = await asyncio.to_thread(Engine.connect, timeout_s=60)
        except (PrerequisiteError, ImportError):
            return None
        try:
            described = await engine.call(engine.api.inspect_image, name)
            key = str(described["Id"]).removeprefix("sha256:")[:32]
            config = described.get("Config") or {}
            layer = self._store.layer(f"r{key[:16]}")
            if not layer.is_dir():
                made = await engine.call(engine.api.create_container, name, command=["/"])
                try:
                    self._progress(f"exporting {name} from the engine")
                    await engine.call(export_tree, engine.api, made["Id"], layer)
                finally:
                    await engine.remove(made["Id"])
        except SandboxError as error:
            if error.code == "no_such_object":
                return None
            raise
        finally:
            engine.close()
        env = dict(pair.split("=", 1) for pair in config.get("Env") or [] if "=" in pair)
        return self._root_image(key, layer, name, wanted, env)

    async def _built(self, environment: Path, build_s: float) -> TreeImage:
        context = await asyncio.to_thread(read_context, environment)
        dockerfile = plain(context.dockerfile)
        wanted = aliases.wanted_bases(dockerfile.text)
        require_classic(dockerfile.text, context)
        parse(dockerfile.text)
        base = await self._found(wanted[0])
        key = hashlib.sha256(json.dumps([context.digest, base.id, _READING]).encode()).hexdigest()[:32]
        if (done := self._store.image(PREFIX + key)) is not None and self._store.note_use(done):
            return done
        lock = AsyncFileLock(self._store.root / "locks" / f"{key}.lock", timeout=build_s)
        log = self._store.root / "logs" / f"{key}.log"
        try:
            async with lock, asyncio.timeout(build_s):
                return self._store.image(PREFIX + key) or await self._run_steps(context, dockerfile, base, key, log)
        except (Timeout, TimeoutError) as error:
            raise SandboxError(
                f"the Dockerfile does not build: no end after {build_s:.0f} s",
                code="build_timeout",
                hint=f"the log is in {log}",
                where=str(environment),
            ) from error

    async def _run_steps(
        self, context: Context, dockerfile: PlainDockerfile, base: TreeImage, key: str, log: Path
    ) -> TreeImage:
        spec = SandboxSpec(image=base.reference, user="root", workdir="/", network="public", limits=_BUILD_LIMITS)
        build = _Build(env=dict(base.env), workdir=base.workdir or "/", user=base.user or "root")
        box = await self._provider.start(spec, 60.0)
        try:
            with log.open("wb") as lines:
                for step in parse(dockerfile.text):
                    title = f"{step.word} {step.text}"
                    self._progress(title)
                    lines.write(f"--> {title}\n".encode())
                    if step.word == "RUN":
                        await self._run(box, build, step, log=log, context=context)
                    elif step.word in {"COPY", "ADD"}:
                        copy = copy_of(step, build.values)
                        written = {
                            source: dockerfile.files[source] for source in copy.sources if source in dockerfile.files
                        }
                        await copy_in(box, context, copy, build.workdir, word=step.word, written=written)
                    elif step.word == "WORKDIR":
                        build.workdir = posixpath.join(build.workdir, expand(step.text, build.values))
                        await box.exec(["mkdir", "-p", build.workdir], cwd="/")
                    else:
                        _note(build, step.word, step.text)
            layer = await box.detach_upper()
        finally:
            await box.close()
        return self._store.save(
            TreeImage(
                id=key,
                layers=(*base.layers, layer),
                env=build.env,
                workdir=build.workdir,
                user=build.user,
                command=(*build.entrypoint, *build.command),
                entrypoint=tuple(build.entrypoint),
                origin={
                    **{f"base_{name}": value for name, value in base.origin.items()},
                    "dockerfile": context.digest,
                    "image_digest": f"{PREFIX}{key}",
                },
            )
        )

    async def _run(self, box: BubblewrapSandbox, build: _Build, step: Step, *, log: Path, context: Context) -> None:
        words = command_words(step.text)
        tail: list[bytes] = []
        with log.open("ab") as lines:

            def on_output(_stream: int, data: bytes) -> None:
                lines.write(data)
                tail.append(data[-2000:])
                del tail[:-8]

            ended = await box.exec(
                words,
                timeout_s=24 * 3600.0,
                cwd=build.workdir,
                env=build.values,
                user=build.user,
                output_cap_bytes=1 << 30,
                on_output=on_output,
            )
        if not ended.ok:
            said = b"".join(tail)[-600:].decode("utf-8", "replace").strip()
            raise SandboxError(
                f"the Dockerfile does not build: line {step.line}, RUN, ended with {ended.exit_code}: {said}",
                code="build_failed",
                hint=f"the whole log is in {log}",
                where=str(context.root),
            )


def _note(build: _Build, word: str, text: str) -> None:
    if word == "ENV":
        build.env.update(assignments(text, build.values))
    elif word == "ARG":
        for name, value in assignments(text if "=" in text else f"{text}=", build.values).items():
            build.args.setdefault(name, value)
    elif word == "USER":
        build.user = expand(text, build.values)
    elif word == "ENTRYPOINT":
        build.entrypoint = command_words(text)
        build.command = []
    elif word == "CMD":
        build.command = command_words(text)
