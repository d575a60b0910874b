"""One Docker container as a sandbox: what its kernel counts, its snapshots, its end."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from envsdk.errors import SandboxError
from envsdk.sandboxes import counting
from envsdk.sandboxes.base import Counters, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.disk import folder_mib
from envsdk.sandboxes.kept import KeptSandbox

if TYPE_CHECKING:
    from envsdk.sandboxes.docker import DockerProvider


class DockerSandbox(KeptSandbox):
    """A running container; `id` is the engine's container id."""

    def __init__(
        self,
        provider: DockerProvider,
        container: str,
        spec: SandboxSpec,
        channel: Channel,
        *,
        image: str,
        image_env: dict[str, str],
    ) -> None:
        super().__init__(container, spec, channel, image_env)
        self.image = image
        self._provider = provider
        self._written: Path | None = None
        self._started_at = time.time()

    async def dial(self, port: int) -> socket.socket:
        """Over the bridge of the network it joined, so from the engine's own machine."""
        engine = self._provider.engine
        described = await engine.call(engine.api.inspect_container, self.id)
        networks = (described.get("NetworkSettings") or {}).get("Networks") or {}
        addresses = [network.get("IPAddress") for network in networks.values()]
        address = next(filter(None, addresses), None)
        if address is None:
            raise SandboxError(
                f"sandbox {self.id[:12]} is on no network",
                code="network_failed",
                hint="it has ended, or its network was removed: run it again",
            )
        return await asyncio.to_thread(socket.create_connection, (address, port), 10.0)

    async def written_mib(self) -> float | None:
        engine = self._provider.engine
        try:
            if self._written is None:
                described = await engine.call(engine.api.inspect_container, self.id)
                self._written = Path((described.get("GraphDriver") or {}).get("Data", {}).get("UpperDir") or "/nowhere")
            if self._written.is_dir():
                return await asyncio.to_thread(folder_mib, self._written)
            listed = await engine.call(engine.api.containers, all=True, size=True, filters={"id": self.id})
        except SandboxError:
            return None
        return float(listed[0].get("SizeRw") or 0) / (1 << 20) if listed else None

    async def counters(self) -> Counters:
        counted = Counters()
        for version in (1, 2):
            texts = await self._channel.peek(counting.inside_paths(version))
            if texts[0] is not None:
                found = dict(zip(counting.FILES[version].values(), texts, strict=True))
                counted = counting.counters_from(lambda *where, found=found: found[where], version)
                break
        used = await self.written_mib()
        return counted.model_copy(update={"disk_used_mib": used, "disk_quota_mib": self.disk_limit_mib})

    async def _engine_facts(self) -> Liveness:
        engine = self._provider.engine
        listens_since = engine.listens_since()
        restarted = True if listens_since is not None and listens_since > self._started_at else None
        try:
            state = (await engine.call(engine.api.inspect_container, self.id))["State"]
        except SandboxError as error:
            reachable = error.code != "engine_unreachable"
            return Liveness(alive=False, engine_reachable=reachable, engine_restarted=restarted)
        ended = state.get("Status") in {"exited", "dead"}
        return Liveness(
            alive=False,
            main_exit_code=int(state["ExitCode"]) if ended else None,
            oom_flag=bool(state.get("OOMKilled")),
            engine_reachable=True,
            engine_restarted=restarted,
        )

    async def snapshot(self) -> Snapshot:
        return await self._provider.commit(self.id)

    async def fork(self, n: int) -> list[Sandbox]:
        """``n`` sandboxes from this one's file system as it is now; processes are not copied."""
        snapshot = await self._provider.commit(self.id, until_unused=True)
        return await self._provider.start_from(snapshot, self.spec, n)

    async def _remove(self) -> None:
        self._provider.forget(self)
