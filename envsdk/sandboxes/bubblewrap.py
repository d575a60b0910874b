"""The bubblewrap back end: namespaces and an overlay, no daemon; milliseconds to start and to fork.

The root is an image's file tree, never the host's. Every sandbox has process, mount, IPC, host-name, cgroup and network
namespaces of its own, a system-call filter, no capability but the few the helper needs, and a control group with its
memory, cpu and process bounds where this process may make one (else per-process limits: `describe` says which).
An ordinary user's sandboxes know one user only: there the agent is the helper's equal, and framing is no evidence.

A weaker boundary than a virtual machine, and where the caller is root, than a remapped container: root inside is the
host's root without its capabilities.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes import cgroups
from envsdk.sandboxes.base import Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.bubblewrap_box import BubblewrapSandbox
from envsdk.sandboxes.bubblewrap_images import TreeImages
from envsdk.sandboxes.bubblewrap_network import Network, open_network
from envsdk.sandboxes.bubblewrap_processes import Running, launch, new_folder
from envsdk.sandboxes.bubblewrap_store import PREFIX, Store
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.disk import remove_tree, storage_failure
from envsdk.sandboxes.pooled import PooledProvider, all_or_none
from envsdk.sandboxes.program import helper_path
from envsdk.sandboxes.progress import Progress
from envsdk.sandboxes.reaper import reap_bubblewrap
from envsdk.sandboxes.services import ImageConfig

_START_S = 60.0
_OF_ITS_MAKER = "it belongs to the provider that made it, while that is open"


class BubblewrapProvider(PooledProvider[BubblewrapSandbox]):
    """Implements `envsdk.sandboxes.base.SandboxProvider` with bubblewrap. Use from one event loop.

    Args:
        aliases: wanted image -> local one, beside ``ENVSDK_IMAGE_ALIASES``.
        progress: called with each line of an image build.
    """

    name = "bubblewrap"

    def __init__(self, *, aliases: Mapping[str, str] | None = None, progress: Progress | None = None) -> None:
        self.store = Store()
        super().__init__(self.store.root)
        reap_bubblewrap(self.store.root)
        _probe(self.store)
        self.images = TreeImages(self, aliases or {}, progress)
        self._snapshots: dict[str, tuple[str, ...]] = {}
        self._transient: set[str] = set()
        self._networks: dict[str, Network] = {}

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        return await self.images.ensure(environment, image, build_s=build_s)

    def describe(self, image: str) -> dict[str, str]:
        """Facts for an episode's record: image, the alias that was used, how limits are held."""
        known = self.store.image(image)
        return {
            "provider": self.name,
            "limits": f"cgroup v{cgroups.version()}" if cgroups.available() else "per process",
            "disk_limit": "file size + watcher",
            **(known.origin if known else {"image": image}),
        }

    async def _start(self, spec: SandboxSpec, timeout_s: float, *, name: str = "") -> BubblewrapSandbox:
        image = self.store.image(spec.image)
        if image is None or not self.store.note_use(image):
            raise SandboxError(
                f"image {spec.image!r} is not on this machine",
                code="image_not_found",
                hint="call ensure_image first",
                where=spec.image,
            )
        return await self._stack(spec, image.layers, image.env, timeout_s, name=name)

    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Sandbox]:
        layers = self._snapshots.get(snapshot.id)
        if layers is None:
            raise SandboxError(
                f"snapshot {snapshot.id} is not this provider's", code="no_such_snapshot", hint=_OF_ITS_MAKER
            )
        image = self.store.image(spec.image)
        env = image.env if image else {}
        boxes = await all_or_none([self._stack(spec, layers, env, _START_S) for _ in range(n)])
        for box in boxes:
            self._adopt(box)
        return list(boxes)

    async def find_prepared(self, key: str, base: str) -> str | None:
        del base  # what it came from is written with it
        known = self.store.image(PREFIX + key)
        return known.reference if known is not None and self.store.note_use(known) else None

    async def keep_prepared(self, key: str, base: str, box: BubblewrapSandbox) -> str:
        over = self.store.image(base)
        assert over is not None
        layer = await box.detach_upper()
        origin = {**over.origin, "image_digest": PREFIX + key, "setup": key}
        prepared = over.model_copy(update={"id": key, "layers": (*over.layers, layer), "origin": origin})
        return self.store.save(prepared).reference

    async def acquire_named(self, spec: SandboxSpec, name: str, *, timeout_s: float) -> BubblewrapSandbox:
        """A sandbox on the network ``spec.join``, reachable there as ``name``."""
        network = self._networks.get(spec.join)
        if network is None or name not in network.names:
            raise SandboxError(
                f"{name!r} is not a name of network {spec.join!r}",
                code="no_such_network",
                hint="name it when the network is opened",
            )
        box = await self._start(spec, timeout_s, name=name)
        self._adopt(box)
        return box

    async def plug_in(self, network: str, pid: int, name: str) -> None:
        """Connect a started sandbox to the network it joins. Raises `SandboxError`."""
        await self._network(network).plug_in(pid, name)

    def _network(self, path: str) -> Network:
        if path not in self._networks:
            raise SandboxError(f"network {path!r} is not this provider's", code="no_such_network", hint=_OF_ITS_MAKER)
        return self._networks[path]

    async def image_config(self, image: str) -> ImageConfig:
        known = self.store.image(image)
        if known is None:
            return ImageConfig()
        return ImageConfig(
            command=known.command, entrypoint=known.entrypoint, user=known.user or "root", workdir=known.workdir or "/"
        )

    async def open_network(self, names: Sequence[str]) -> str:
        network = await open_network(names)
        self._networks[network.path] = network
        return network.path

    async def close_network(self, network: str) -> None:
        gone = self._networks.pop(network, None)
        if gone is not None:
            await gone.close()

    async def _stack(
        self, spec: SandboxSpec, layers: tuple[str, ...], env: Mapping[str, str], timeout_s: float, *, name: str = ""
    ) -> BubblewrapSandbox:
        running, channel = await self.start_layers(spec, layers)
        box = BubblewrapSandbox(self, running, spec, channel, layers=layers, image_env=dict(env), name=name)
        try:
            await box.hello(timeout_s=timeout_s)
        except SandboxError as error:
            why = running.error_text()
            await box.close()
            if error.code == "channel_lost" and why:
                raise SandboxError(
                    f"the sandbox did not start: {why}", code="sandbox_start", hint="`envsdk doctor` says what it lacks"
                ) from error
            raise
        except asyncio.CancelledError:
            await asyncio.shield(box.close())
            raise
        return box

    async def start_layers(self, spec: SandboxSpec, layers: tuple[str, ...]) -> tuple[Running, Channel]:
        """Processes and channel of a sandbox over these layers."""
        options = self.store.options(layers)
        hosts = self._network(spec.join).hosts_text() if spec.join else ""
        folder = self.store.root
        try:
            folder = new_folder(self.store.boxes())
            (folder / "layers").write_text(" ".join(layers), encoding="ascii")
            if hosts:
                (folder / "hosts").write_text(hosts, encoding="ascii")
        except OSError as error:
            if folder != self.store.root:
                remove_tree(folder)
            raise storage_failure(error, self.store.root) from error
        try:
            return await launch(spec, folder, options, folder.name)
        except BaseException:
            # Cancelled or refused half-way: what was created must not stay behind.
            remove_tree(folder)
            raise

    def keep(self, layers: tuple[str, ...], *, until_unused: bool = False) -> Snapshot:
        """Name a stack of frozen layers; the top one lives as long as we do, or until its last sandbox closes."""
        if not until_unused:
            self._transient.discard(layers[-1])
        elif layers[-1] not in self._snapshots:
            self._transient.add(layers[-1])
        self._snapshots[layers[-1]] = layers
        return Snapshot(id=layers[-1], provider=self.name)

    def forget(self, box: BubblewrapSandbox) -> None:
        super().forget(box)
        for name in self._transient.intersection(box.layers):
            if not any(name in other.layers for other in self._open):
                self._transient.discard(name)
                del self._snapshots[name]
                self.later(self._drop_after(box, name))

    async def _drop_after(self, box: BubblewrapSandbox, layer: str) -> None:
        await box.wait_ended()
        await asyncio.to_thread(self.store.drop_layer, layer)

    async def _close_rest(self) -> None:
        for network in list(self._networks):
            await self.close_network(network)
        for name in self._snapshots:
            await asyncio.to_thread(self.store.drop_layer, name)
        self._snapshots.clear()
        with contextlib.suppress(OSError):  # another provider of this process still has sandboxes
            self.store.boxes().rmdir()


def _probe(store: Store) -> None:
    """Raises `PrerequisiteError` where bubblewrap or overlays do not work here."""
    if shutil.which("bwrap") is None:
        raise PrerequisiteError("bubblewrap is not installed", code="no_bubblewrap", hint="apt-get install bubblewrap")
    folder = new_folder(store.boxes())
    rootless = os.geteuid() != 0
    options = f"lowerdir={folder}/m,upperdir={folder}/u,workdir={folder}/w" + (",userxattr" if rootless else "")
    words = [str(helper_path()), "launch", *(["user"] if rootless else []), f"at={folder}/m", f"overlay={options}"]
    words += ["--", shutil.which("bwrap") or "bwrap", "--bind", "/", "/", "--unshare-pid", "--unshare-net", "--"]
    try:
        tried = subprocess.run([*words, "/bin/true"], capture_output=True, check=False, timeout=20)
        if tried.returncode:
            raise PrerequisiteError(
                f"bubblewrap cannot start here: {tried.stderr.decode('utf-8', 'replace').strip()}",
                code="no_bubblewrap",
                hint="it needs root, or user namespaces and overlay mounts in them (Linux 5.11 or later)",
            )
    finally:
        remove_tree(folder)
