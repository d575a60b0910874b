"""The Docker back end: containers hardened by default, driven over their attach stream.

Every container has the helper as its first process (mounted read-only from one shared volume, so that remote engines work
too), no network unless asked, no capability but the few the helper needs to change users and to own files, no new
privileges, and bounds on memory, cpu, processes and file size. A container ends by itself when its owner dies.

Disk: where the engine's storage has no quota, one file cannot grow past the cap (RLIMIT_FSIZE), and a watcher ends the
sandbox's processes when the whole grew past it; `describe` says which of the two applies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes import docker_network
from envsdk.sandboxes.base import Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.docker_box import DockerSandbox, gather_or_close
from envsdk.sandboxes.docker_engine import Engine, new_labels
from envsdk.sandboxes.docker_helper import HELPER_DIR, helper_volume
from envsdk.sandboxes.docker_images import DockerImages, Progress
from envsdk.sandboxes.limits import OPEN_FILES, SHM_MIB, bounds
from envsdk.sandboxes.services import ImageConfig

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")


class DockerProvider:
    """Implements `envsdk.sandboxes.base.SandboxProvider` over a Docker daemon. Use from one event loop.

    Args:
        aliases: wanted image -> local one, beside ``ENVSDK_IMAGE_ALIASES``.
        progress: called with each line of an image build.
    """

    name = "docker"

    def __init__(self, *, aliases: Mapping[str, str] | None = None, progress: Progress | None = None) -> None:
        self._engine = Engine.connect()
        self.images = DockerImages(self._engine, aliases or {}, progress)
        self._env: dict[str, dict[str, str]] = {}
        self._helper: asyncio.Task[str] | None = None
        self._open: set[DockerSandbox] = set()
        self._removals: set[asyncio.Task[None]] = set()
        self._snapshots: set[str] = set()
        self._networks: set[str] = set()

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        return await self.images.ensure(environment, image, build_s=build_s)

    def describe(self, image: str) -> dict[str, str]:
        """Facts for an episode's record: engine, image digest, the alias that was used."""
        return {
            "provider": self.name,
            "disk_limit": "file size + watcher",
            **self.images.origin.get(image, {"image": image}),
        }

    async def acquire(self, spec: SandboxSpec, *, timeout_s: float = 60.0) -> Sandbox:
        return await self._start(spec, spec.image, timeout_s)

    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Sandbox]:
        starts = [asyncio.ensure_future(self._start(spec, snapshot.id, 60.0)) for _ in range(n)]
        return await gather_or_close(starts)

    async def acquire_named(self, spec: SandboxSpec, name: str, *, timeout_s: float) -> DockerSandbox:
        return await self._start(spec, spec.image, timeout_s, name=name)

    async def image_config(self, image: str) -> ImageConfig:
        described = await self.images.inspect(image) or {}
        config = described.get("Config") or {}
        command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        return ImageConfig(command=command, user=config.get("User") or "root", workdir=config.get("WorkingDir") or "/")

    async def open_network(self, names: Sequence[str]) -> str:
        del names  # the engine's own name server knows them
        network = await docker_network.open_network(self._engine)
        self._networks.add(network)
        return network

    async def close_network(self, network: str) -> None:
        await asyncio.gather(*list(self._removals), return_exceptions=True)
        await docker_network.close_network(self._engine, network)
        self._networks.discard(network)

    async def prewarm(self, spec: SandboxSpec, n: int) -> None:
        """Start ``n`` sandboxes of this spec ahead of their use."""

    async def _start(self, spec: SandboxSpec, image: str, timeout_s: float, *, name: str = "") -> DockerSandbox:
        began = time.monotonic()
        container = ""
        try:
            async with asyncio.timeout(timeout_s):
                env = await self._image_env(image)
                volume = await self._helper_volume(image)
                api = self._engine.api
                options = _host_options(spec, volume)
                made = await self._engine.call(
                    api.create_container,
                    image,
                    entrypoint=[f"{HELPER_DIR}/helper"],
                    command=[],
                    user="0:0",
                    working_dir="/",
                    hostname="sandbox",
                    stdin_open=True,
                    labels=new_labels(kind="sandbox"),
                    host_config=api.create_host_config(**options),
                    networking_config=_named_on(api, spec.join, name),
                )
                container = str(made["Id"])
                channel, _stream = await self._engine.attach(container)
                await self._engine.call(api.start, container)
                box = DockerSandbox(self, container, spec, channel, env)
                await box.hello(timeout_s=max(0.1, timeout_s - (time.monotonic() - began)))
        except TimeoutError as error:
            await self._drop(container)
            raise SandboxError(
                f"no sandbox of {spec.image!r} after {timeout_s:.0f} s", code="start_timeout", where=spec.image
            ) from error
        except BaseException:
            # Cancelled or refused half-way: what was created must not stay behind.
            await asyncio.shield(self._drop(container))
            raise
        self._open.add(box)
        return box

    async def _drop(self, container: str) -> None:
        if container:
            await self._engine.remove(container)

    async def _image_env(self, image: str) -> dict[str, str]:
        if image not in self._env:
            described = await self.images.inspect(image)
            if described is None:
                raise SandboxError(
                    f"image {image!r} is not on this machine",
                    code="image_not_found",
                    hint="call ensure_image first",
                    where=image,
                )
            pairs = (described.get("Config") or {}).get("Env") or []
            self._env[image] = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return self._env[image]

    async def _helper_volume(self, image: str) -> str:
        if self._helper is None or (self._helper.done() and self._helper.exception() is not None):
            self._helper = asyncio.ensure_future(helper_volume(self._engine, image))
        return await asyncio.shield(self._helper)

    async def state(self, container: str) -> dict[str, Any]:
        """The engine's state record of a container. Raises `SandboxError`."""
        described = await self._engine.call(self._engine.api.inspect_container, container)
        return dict(described["State"])

    async def disk_used_mib(self, container: str) -> float | None:
        """Size of what the sandbox wrote, where the engine tells."""
        try:
            listed = await self._engine.call(
                self._engine.api.containers, all=True, size=True, filters={"id": container}
            )
        except SandboxError:
            return None
        return float(listed[0].get("SizeRw") or 0) / (1 << 20) if listed else None

    async def commit(self, container: str, spec: SandboxSpec) -> Snapshot:
        """Freeze a container's file system as an image of its own."""
        api = self._engine.api
        conf = {"Labels": new_labels(kind="snapshot"), "Entrypoint": [], "Cmd": []}
        made = await self._engine.call(api.commit, container, conf=conf)
        self._snapshots.add(str(made["Id"]))
        if spec.image in self._env:
            self._env[str(made["Id"])] = self._env[spec.image]
        return Snapshot(id=str(made["Id"]), provider=self.name)

    async def discard(self, container: str) -> None:
        """Remove a container whose channel is closed: its processes are gone, the removal may come a moment later."""
        self._open = {box for box in self._open if box.id != container}
        task = asyncio.ensure_future(self._engine.remove(container))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def close(self) -> None:
        """End every sandbox and remove every snapshot of this provider."""
        await asyncio.gather(*(box.close() for box in list(self._open)))
        await asyncio.gather(*self._removals, return_exceptions=True)
        for network in list(self._networks):
            await self.close_network(network)
        for image in list(self._snapshots):
            self._snapshots.discard(image)
            try:
                await self._engine.call(self._engine.api.remove_image, image, force=True)
            except SandboxError as error:
                if error.code not in {"no_such_object", "engine_refused"}:
                    raise
        self._engine.close()


def _named_on(api: Any, network: str, name: str) -> Any:
    if not (network and name):
        return None
    return api.create_networking_config({network: api.create_endpoint_config(aliases=[name])})


def _host_options(spec: SandboxSpec, volume: str) -> dict[str, Any]:
    limit = bounds(spec.limits)
    if spec.network == "allowlist":
        raise PrerequisiteError("docker sandboxes have no allow-listed network", code="network_unsupported")
    network = {"none": "none", "internal": spec.join or "none", "public": "bridge"}[spec.network]
    return {
        "network_mode": network,
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "pids_limit": limit.pids,
        "mem_limit": f"{limit.memory_mib}m",
        "memswap_limit": f"{limit.memory_mib}m",
        "nano_cpus": int(limit.cpus * 1e9),
        "shm_size": f"{SHM_MIB}m",
        "binds": {volume: {"bind": HELPER_DIR, "mode": "ro"}},
        "log_config": {"Type": "none"},
        "ulimits": [
            {"Name": "fsize", "Soft": limit.disk_mib << 20, "Hard": limit.disk_mib << 20},
            {"Name": "nofile", "Soft": OPEN_FILES, "Hard": OPEN_FILES},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
    }
