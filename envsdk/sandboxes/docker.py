"""The Docker back end: containers hardened by default, driven over their attach stream.

Every container has the helper as its first process (mounted read-only from one shared volume, so that remote engines
work too), no network unless asked, no capability but the few the helper needs to change users and to own files, no new
privileges, and bounds on memory, cpu, processes and file size. It ends by itself when its owner dies.

Disk: the engine's default storage has no quota, so one file cannot grow past the limit (RLIMIT_FSIZE), and, where the
engine's files are on this machine, a watcher ends the sandbox's processes when their sum did. `describe` says which.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes import cgroups, docker_network
from envsdk.sandboxes.base import Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.docker_box import DockerSandbox
from envsdk.sandboxes.docker_engine import Engine, new_labels
from envsdk.sandboxes.docker_helper import helper_volume
from envsdk.sandboxes.docker_images import SETUP_REPOSITORY, DockerImages
from envsdk.sandboxes.docker_options import create_arguments
from envsdk.sandboxes.pooled import PooledProvider, all_or_none
from envsdk.sandboxes.progress import Progress
from envsdk.sandboxes.reaper import reap_docker
from envsdk.sandboxes.services import ImageConfig

_START_S = 60.0
P = ParamSpec("P")


class DockerProvider(PooledProvider[DockerSandbox]):
    """Implements `envsdk.sandboxes.base.SandboxProvider` over a Docker daemon. Use from one event loop.

    Args:
        aliases: wanted image -> local one, beside ``ENVSDK_IMAGE_ALIASES``.
        progress: called with each line of an image build.
    """

    name = "docker"

    def __init__(self, *, aliases: Mapping[str, str] | None = None, progress: Progress | None = None) -> None:
        self.engine = Engine.connect()
        storage = Path(self.engine.storage_dir)
        self._is_here = storage.is_dir()
        super().__init__(storage if self._is_here else None)
        # All sandboxes weigh more than one process (`cgroups.share_out_cpu`), where the engine is on this machine and
        # takes a plain path.
        is_ours = self._is_here and self.engine.cgroup_driver == "cgroupfs" and cgroups.available()
        self._parent = f"/{cgroups.PARENT}" if is_ours else ""
        self.images = DockerImages(self.engine, aliases or {}, progress)
        self._helper: asyncio.Task[str] | None = None
        self._snapshots: list[str] = []
        self._transient: set[str] = set()
        self._networks: set[str] = set()
        self._to_remove: set[str] = set()

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        return await self.images.ensure(environment, image, build_s=build_s)

    def describe(self, image: str) -> dict[str, str]:
        """Facts for an episode's record: image digest, the alias that was used, how the disk limit is held."""
        return {
            "provider": self.name,
            "disk_limit": "file size" if self._disk is None else "file size, watcher",
            **self.images.origin.get(image, {"image": image}),
        }

    async def image_config(self, image: str) -> ImageConfig:
        """What the image runs by itself, for services."""
        config = await self.images.config(image)
        entrypoint = tuple(config.get("Entrypoint") or ())
        return ImageConfig(
            command=(*entrypoint, *(config.get("Cmd") or ())),
            entrypoint=entrypoint,
            user=config.get("User") or "root",
            workdir=config.get("WorkingDir") or "/",
        )

    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Sandbox]:
        boxes = await all_or_none([self._launch(spec, snapshot.id, _START_S) for _ in range(n)])
        for box in boxes:
            self._adopt(box)
        return list(boxes)

    async def _start(self, spec: SandboxSpec, timeout_s: float) -> DockerSandbox:
        return await self._launch(spec, spec.image, timeout_s)

    async def acquire_named(self, spec: SandboxSpec, name: str, *, timeout_s: float) -> DockerSandbox:
        """A sandbox on the network ``spec.join``, reachable there as ``name``."""
        box = await self._launch(spec, spec.image, timeout_s, name=name)
        self._adopt(box)
        return box

    async def _launch(self, spec: SandboxSpec, image: str, timeout_s: float, *, name: str = "") -> DockerSandbox:
        began = time.monotonic()
        api = self.engine.api
        container, channel = "", None
        if spec.network == "allowlist" and (not self._is_here or os.geteuid()):
            raise PrerequisiteError(
                "docker sandboxes have an allow-listed network only where root runs them on the engine's own machine",
                code="network_unsupported",
                hint="run as root beside the engine, use bubblewrap, or declare a service that the agent talks to",
            )
        try:
            async with asyncio.timeout(timeout_s):
                volume = await asyncio.shield(self._helper_volume(image))
                config = await self.images.config(image)
                arguments = create_arguments(api, spec, volume, name, parent=self._parent)
                container = await self._made(self._id(api.create_container, image, **arguments), undo=self._drop)
                channel = await self.engine.attach(container)
                await self.engine.call(api.start, container)
                env = dict(pair.split("=", 1) for pair in config.get("Env") or [] if "=" in pair)
                box = DockerSandbox(self, container, spec, channel, image=image, image_env=env)
                await box.hello(timeout_s=max(0.1, timeout_s - (time.monotonic() - began)))
                if spec.network == "allowlist":
                    described = await self.engine.call(api.inspect_container, container)
                    await box.open_way_out(int(described["State"]["Pid"]))
        except TimeoutError as error:
            await self._abandon(container, channel)
            raise SandboxError(
                f"no sandbox of {spec.image!r} after {timeout_s:.0f} s",
                code="start_timeout",
                hint="raise acquire_s in the budget, or lower the concurrency: starts share the machine",
                where=spec.image,
            ) from error
        except BaseException:
            # Cancelled or refused half-way: what was created must not stay behind.
            await asyncio.shield(self._abandon(container, channel))
            raise
        return box

    async def _abandon(self, container: str, channel: Channel | None) -> None:
        if channel is not None:
            channel.close()
        with contextlib.suppress(SandboxError):  # what went wrong first is the one to tell
            await self._drop(container)

    async def _drop(self, container: str) -> None:
        """Remove a container; one that the engine cannot remove now, it is asked to again when we close."""
        if container:
            self._to_remove.add(container)
            await self.engine.remove(container)
            self._to_remove.discard(container)

    async def _helper_volume(self, image: str) -> str:
        if self._helper is None or (self._helper.done() and self._helper.exception() is not None):
            self.later(reap_docker(self.engine))
            self._helper = asyncio.ensure_future(helper_volume(self.engine, image))
        return await self._helper

    async def find_prepared(self, key: str, base: str) -> str | None:
        return await self.images.find_prepared(key, base)

    async def keep_prepared(self, key: str, base: str, box: DockerSandbox) -> str:
        conf = {"Labels": {"envsdk.kind": "image"}, "Entrypoint": [], "Cmd": []}
        where = {"repository": SETUP_REPOSITORY, "tag": key}
        await self.engine.call(self.engine.api.commit, box.id, conf=conf, **where)
        kept = await self.images.find_prepared(key, base)
        assert kept is not None
        return kept

    async def commit(self, container: str, *, until_unused: bool = False) -> Snapshot:
        """Freeze a container's file system as an image, for this provider's life or until its last sandbox closes."""
        conf = {"Labels": new_labels(kind="snapshot"), "Entrypoint": [], "Cmd": []}
        image = await self._made(self._id(self.engine.api.commit, container, conf=conf), undo=self._take_back)
        self._snapshots.append(image)
        if until_unused:
            self._transient.add(image)
        return Snapshot(id=image, provider=self.name)

    async def _id(self, function: Callable[P, dict[str, Any]], *args: P.args, **kwargs: P.kwargs) -> str:
        return str((await self.engine.call(function, *args, **kwargs))["Id"])

    async def _made(self, making: Coroutine[Any, Any, str], *, undo: Callable[[str], Awaitable[None]]) -> str:
        """The id of what the engine makes; what a cancelled caller asked for is undone when it comes.

        A thread cannot be stopped: what it makes would have no owner.
        """
        task = asyncio.ensure_future(making)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self.later(self._unmade(task, undo))
            raise

    async def _unmade(self, making: asyncio.Task[str], undo: Callable[[str], Awaitable[None]]) -> None:
        await undo(await making)

    async def _take_back(self, image: str) -> None:
        self._snapshots.append(image)
        await self._remove_snapshot(image)

    def forget(self, box: DockerSandbox) -> None:
        """The box's channel is closed and its processes are ending; its removal comes a moment later."""
        super().forget(box)
        self.later(self._remove(box))

    async def _remove(self, box: DockerSandbox) -> None:
        await self._drop(box.id)
        if box.image in self._transient and not any(other.image == box.image for other in self._open):
            self._transient.discard(box.image)
            await self._remove_snapshot(box.image)

    async def _remove_snapshot(self, image: str) -> None:
        try:
            await self.engine.call(self.engine.api.remove_image, image, force=True)
        except SandboxError as error:
            # One that others were built on goes after them, at the end.
            if error.code not in {"no_such_object", "engine_refused"}:
                raise
            return
        self._snapshots.remove(image)

    async def open_network(self, names: Sequence[str]) -> str:
        """An internal network for a task's services; the engine's own name server knows their names."""
        del names
        close = functools.partial(docker_network.close_network, self.engine)
        network = await self._made(docker_network.open_network(self.engine), undo=close)
        self._networks.add(network)
        return network

    async def close_network(self, network: str) -> None:
        """Remove a network after its sandboxes were closed."""
        await self.settled()
        await docker_network.close_network(self.engine, network)
        self._networks.discard(network)

    async def _close_rest(self) -> None:
        await asyncio.gather(*(self._drop(each) for each in list(self._to_remove)))
        for network in list(self._networks):
            await self.close_network(network)
        for image in reversed(list(self._snapshots)):
            await self._remove_snapshot(image)
        self.engine.close()
