"""One Docker container as a sandbox: what its kernel counts, its snapshots, its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from envsdk.errors import SandboxError
from envsdk.sandboxes import counting
from envsdk.sandboxes.base import Counters, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.limits import bounds

if TYPE_CHECKING:
    from envsdk.sandboxes.docker import DockerProvider


class DockerSandbox(KeptSandbox):
    """A running container; `id` is the engine's container id."""

    def __init__(
        self, provider: DockerProvider, container: str, spec: SandboxSpec, channel: Channel, image_env: dict[str, str]
    ) -> None:
        super().__init__(container, spec, channel, image_env)
        self._provider = provider

    async def counters(self) -> Counters:
        counted = Counters()
        for version in (1, 2):
            texts = await self._channel.peek(counting.inside_paths(version))
            if texts[0] is not None:
                found = dict(zip(counting.FILES[version].values(), texts, strict=True))
                counted = counting.counters_from(lambda *where, found=found: found[where], version)
                break
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
