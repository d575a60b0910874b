"""A task's set-up, run once: an image that holds what a script did, named by the digest of what it ran over.

Sandboxes of the prepared image share warm pools and fork like those of any other. The script runs as root, in the
work folder, with the environment and the network of the task's box; processes that it leaves are ended. Equal set-ups
over equal images are one image, made behind a lock, with the whole log kept.

Not promised: that a script which takes something from the network leaves the same files a year later. Its result stays
until it is pruned (`envsdk images prune`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Protocol, TypeVar

from filelock import AsyncFileLock, Timeout

from envsdk.errors import SandboxError
from envsdk.home import images_dir
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.kept import KeptSandbox

B = TypeVar("B", bound=KeptSandbox)
_LOG_BYTES = 16 << 20
_START_S = 60.0


class Preparing(Protocol[B]):
    """What a back end brings: starting a sandbox, and keeping one's files as an image under a key."""

    name: str

    async def start(self, spec: SandboxSpec, timeout_s: float) -> B: ...
    async def find_prepared(self, key: str, base: str) -> str | None: ...
    async def keep_prepared(self, key: str, base: str, box: B) -> str: ...


def setup_key(spec: SandboxSpec, script: str) -> str:
    """32 hex digits that name the result of a script in a box: image, user, folder, environment, network, script."""
    what = [spec.image, spec.user, spec.workdir, spec.env, spec.network, spec.allowed_hosts, script]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]


async def prepare(host: Preparing[B], spec: SandboxSpec, script: str, *, timeout_s: float) -> str:
    """The pinned reference of ``spec.image`` with ``script`` run in it, now or earlier, here or by another process.

    Raises `SandboxError` (``setup_failed``), beside what starting a sandbox raises.
    """
    key = setup_key(spec, script)
    if (done := await host.find_prepared(key, spec.image)) is not None:
        return done
    folder = images_dir() / "builds"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        async with AsyncFileLock(folder / f"setup-{host.name}-{key}.lock", timeout=_START_S + timeout_s):
            return await host.find_prepared(key, spec.image) or await _run(host, spec, script, key, timeout_s)
    except Timeout as error:
        raise SandboxError(
            f"another process held the set-up over {spec.image} for {_START_S + timeout_s:.0f} s",
            code="setup_failed",
            where=spec.image,
        ) from error


async def _run(host: Preparing[B], spec: SandboxSpec, script: str, key: str, timeout_s: float) -> str:
    log = images_dir() / "builds" / f"setup-{host.name}-{key}.log"
    box = await host.start(spec, _START_S)
    try:
        with log.open("w+b") as lines:

            def keep(_stream: int, data: bytes) -> None:
                lines.write(data)

            ended = await box.exec(
                script,
                user="root",
                timeout_s=timeout_s,
                output_cap_bytes=_LOG_BYTES,
                on_output=keep,
            )
            lines.seek(max(0, lines.tell() - 300))
            said = lines.read().decode("utf-8", "replace").strip()
        if not ended.ok:
            how = f"had no end after {timeout_s:.0f} s" if ended.timed_out else f"ended with {ended.exit_code}"
            raise SandboxError(
                f"the set-up {how}: {said or 'it wrote nothing'}",
                code="setup_failed",
                hint=f"the whole log is in {log}",
                where=spec.image,
            )
        await box.kill_agent_processes()
        return await host.keep_prepared(key, spec.image, box)
    finally:
        await box.close()
