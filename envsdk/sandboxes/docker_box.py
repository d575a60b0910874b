"""One Docker container as a sandbox: what its kernel counts, its snapshots, its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Counters, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.limits import bounds

if TYPE_CHECKING:
    from envsdk.sandboxes.docker import DockerProvider

_MIB = 1 << 20
_V1 = {
    "oom": "/sys/fs/cgroup/memory/memory.oom_control",
    "memory_peak": "/sys/fs/cgroup/memory/memory.max_usage_in_bytes",
    "memory_limit": "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "pids_events": "/sys/fs/cgroup/pids/pids.events",
    "pids_limit": "/sys/fs/cgroup/pids/pids.max",
    "pids_peak": "/sys/fs/cgroup/pids/pids.peak",
}
_V2 = {
    "oom": "/sys/fs/cgroup/memory.events",
    "memory_peak": "/sys/fs/cgroup/memory.peak",
    "memory_limit": "/sys/fs/cgroup/memory.max",
    "pids_events": "/sys/fs/cgroup/pids.events",
    "pids_limit": "/sys/fs/cgroup/pids.max",
    "pids_peak": "/sys/fs/cgroup/pids.peak",
}


def _keyed(text: bytes | None, key: str) -> int | None:
    for line in (text or b"").decode("ascii", "replace").splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.strip().isdecimal():
            return int(value)
    return None


def _plain(text: bytes | None) -> int | None:
    value = (text or b"").strip().decode("ascii", "replace")
    return int(value) if value.isdecimal() else None


def counters_from(read: dict[str, bytes | None]) -> Counters:
    """Counters out of the texts of a sandbox's cgroup files (either version), named as in the tables above."""
    oom = _keyed(read["oom"], "oom_kill")
    peak, limit = _plain(read["memory_peak"]), _plain(read["memory_limit"])
    return Counters(
        oom_kills=oom,
        memory_peak_mib=None if peak is None else peak / _MIB,
        memory_limit_mib=None if limit is None else limit / _MIB,
        pids_limit_hits=_keyed(read["pids_events"], "max"),
        pids_peak=_plain(read["pids_peak"]),
        pids_limit=_plain(read["pids_limit"]),
    )


class DockerSandbox(KeptSandbox):
    """A running container; `id` is the engine's container id."""

    def __init__(
        self, provider: DockerProvider, container: str, spec: SandboxSpec, channel: Channel, image_env: dict[str, str]
    ) -> None:
        super().__init__(container, spec, channel, image_env)
        self._provider = provider

    async def counters(self) -> Counters:
        tables = (_V1, _V2)
        found = await self._channel.peek([path for table in tables for path in table.values()])
        first, second = found[: len(_V1)], found[len(_V1) :]
        texts = first if first[0] is not None else second
        counted = counters_from(dict(zip(_V1, texts, strict=True)))
        quota = float(bounds(self.spec.limits).disk_mib)
        used = await self._provider.disk_used_mib(self.id)
        return counted.model_copy(update={"disk_used_mib": used, "disk_quota_mib": quota})

    async def _engine_facts(self) -> Liveness:
        try:
            state = await self._provider.state(self.id)
        except SandboxError as error:
            return Liveness(alive=False, engine_reachable=error.code != "engine_unreachable")
        ended = state.get("Status") in {"exited", "dead"}
        return Liveness(
            alive=False,
            main_exit_code=int(state["ExitCode"]) if ended else None,
            oom_flag=bool(state.get("OOMKilled")),
            engine_reachable=True,
        )

    async def snapshot(self) -> Snapshot:
        return await self._provider.commit(self.id, self.spec)

    async def fork(self, n: int) -> list[Sandbox]:
        """``n`` sandboxes from this one's file system as it is now; processes are not copied."""
        snapshot = await self.snapshot()
        return await self._provider.start_from(snapshot, self.spec, n)

    async def _remove(self) -> None:
        await self._provider.discard(self.id)


async def gather_or_close(starts: list[asyncio.Task[Any]]) -> list[Any]:
    """All results, or none: where one start fails, those that came up are closed and its error is raised."""
    results = await asyncio.gather(*starts, return_exceptions=True)
    failed = [result for result in results if isinstance(result, BaseException)]
    if failed:
        await asyncio.gather(*(box.close() for box in results if not isinstance(box, BaseException)))
        raise failed[0]
    return list(results)
