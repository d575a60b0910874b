"""One bubblewrap sandbox: its overlay, and the snapshots that its processes end for and are started anew from."""

from __future__ import annotations

import asyncio
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from envsdk.sandboxes.base import Counters, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.bubblewrap_processes import Running, end
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.counting import counters_from
from envsdk.sandboxes.disk import folder_mib, remove_tree
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.namespaces import socket_inside
from envsdk.sandboxes.owner import place_tag, this_owner

if TYPE_CHECKING:
    from envsdk.sandboxes.bubblewrap import BubblewrapProvider

_START_S = 30.0


class BubblewrapSandbox(KeptSandbox):
    """A running sandbox, which a snapshot freezes.

    A snapshot ends its processes: what it wrote becomes a layer, and its next use starts it anew on top of that; one
    that is closed after a fork is not started for nothing.
    """

    def __init__(
        self,
        provider: BubblewrapProvider,
        running: Running,
        spec: SandboxSpec,
        channel: Channel,
        *,
        layers: tuple[str, ...],
        image_env: dict[str, str],
        name: str = "",
    ) -> None:
        super().__init__(running.folder.name, spec, channel, image_env)
        self._provider = provider
        self._running = running
        self._name = name
        self._is_frozen = False
        self._waking = asyncio.Lock()
        self.layers = layers

    async def hello(self, *, timeout_s: float) -> None:
        await super().hello(timeout_s=timeout_s)
        if self.spec.join:
            await self._provider.plug_in(self.spec.join, self._running.inner_pid(), self._name)
        if self.spec.network == "allowlist":
            await self.open_way_out(self._running.inner_pid())

    @property
    def upper(self) -> Path:
        """What the sandbox wrote over its image, on the host's disk."""
        return self._running.folder / "u"

    async def dial(self, port: int) -> socket.socket:
        return await socket_inside(self._running.inner_pid(), "dial", port)

    async def written_mib(self) -> float:
        return await asyncio.to_thread(folder_mib, self.upper)

    async def counters(self) -> Counters:
        used = await self.written_mib()
        group = self._running.group
        counted = counters_from(group.read, group.version) if group is not None else Counters()
        return counted.model_copy(update={"disk_used_mib": used, "disk_quota_mib": self.disk_limit_mib})

    async def _engine_facts(self) -> Liveness:
        ended = self._running.ended.is_set()
        return Liveness(alive=False, main_exit_code=self._running.process.returncode if ended else None)

    async def snapshot(self) -> Snapshot:
        await self._freeze(snapshot_name())
        return self._provider.keep(self.layers)

    async def fork(self, n: int) -> list[Sandbox]:
        """``n`` sandboxes stacked on this one's file system; its processes end, and it goes on from there too."""
        await self._freeze(snapshot_name())
        return await self._provider.start_from(self._provider.keep(self.layers, until_unused=True), self.spec, n)

    async def _freeze(self, name: str) -> None:
        """Make a layer of what was written; of a sandbox that was not used since the last one, nothing new was."""
        async with self._waking:
            if self._is_frozen:
                return
            frozen = self._running
            if not await self._channel.retire():
                await end(frozen)
            # Nobody writes any more, so the mount that still stands over the folder for a moment does no harm.
            self.layers = (*self.layers, self._provider.store.freeze(self.upper, name))
            self._is_frozen = True
            self._provider.later(_clear(frozen))

    async def _link(self) -> Channel:
        if self._is_frozen and not self._closed:
            async with self._waking:
                if self._is_frozen and not self._closed:
                    await self._restart()
        return self._channel

    async def _restart(self) -> None:
        self._running, self._channel = await self._provider.start_layers(self.spec, self.layers)
        self._is_frozen = False
        if self._closed:  # meanwhile: nobody else will end this one
            self._channel.close()
            self._provider.later(_clear(self._running))
            return
        await self.hello(timeout_s=_START_S)

    async def detach_upper(self) -> str:
        """End the sandbox and keep what it wrote as a layer, whose name is returned."""
        await self._freeze(f"i{secrets.token_hex(8)}")
        self._closed = True
        self._provider.forget(self)
        return self.layers[-1]

    async def _remove(self) -> None:
        self._provider.forget(self)
        self._provider.later(_clear(self._running))

    async def wait_ended(self) -> None:
        """Until no process of it is left."""
        await self._running.ended.wait()


async def _clear(running: Running) -> None:
    await end(running)
    await asyncio.to_thread(remove_tree, running.folder)


def snapshot_name() -> str:
    """A layer that belongs to this process: the reaper removes it when the process is gone."""
    owner = this_owner()
    return f"s{place_tag(owner.place)}-{owner.pid}-{owner.started}-{secrets.token_hex(4)}"
