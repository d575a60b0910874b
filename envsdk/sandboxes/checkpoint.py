"""Whether this machine's engine could freeze running processes (CRIU): a probe, asked for by name, and nothing more.

Snapshots and forks here are of file systems; no sandbox ever claims to keep processes. Engines offer checkpoints as an
experiment whose restores often fail, so the probe does the whole thing once: it starts a container that counts, takes
a checkpoint, starts it again from that, and looks whether the count went on. What does not work is said in the words
of whatever refused.
"""

from __future__ import annotations

import importlib.util
import io
import secrets
import shutil
import subprocess
import tarfile
import time
from typing import Any

from envsdk.errors import PrerequisiteError
from envsdk.prerequisites import Finding

NAME = "process checkpoints"
_COUNT = "i=0; while :; do i=$((i+1)); echo $i > /count; sleep 0.05; done"
_WAIT_S = 10.0
COUNT_S = 1.0


def not_asked() -> Finding:
    """The row of `envsdk doctor` without ``--checkpoints``: nothing was tried, so nothing is claimed."""
    return Finding(
        name=NAME,
        state="absent",
        detail="not probed; forks copy files, never processes",
        fix="envsdk doctor --checkpoints tries it (experimental, used by nothing here)",
    )


def probe(image: str) -> Finding:
    """Take and restore a real checkpoint of a container of ``image``; ``ok`` only where the processes went on."""
    why = _why_not(image)
    if why:
        return Finding(name=NAME, state="absent", detail=why, fix="nothing here needs it: forks copy files")
    return Finding(name=NAME, state="ok", detail="a counting process went on after its restore")


def _why_not(image: str) -> str:
    if importlib.util.find_spec("docker") is None:
        return "the Python package docker is not installed"
    if shutil.which("criu") is None:
        return "criu is not installed"
    checked = subprocess.run(["criu", "check"], capture_output=True, text=True, check=False, timeout=30)
    if checked.returncode:
        return f"criu check: {_last_line(checked.stdout + checked.stderr)}"
    return _refused(image)


def _refused(image: str) -> str:
    import docker.errors

    from envsdk.sandboxes.docker_engine import Engine

    try:
        engine = Engine.connect(timeout_s=30)
    except PrerequisiteError as error:
        return error.message
    try:
        if not engine.api.info().get("ExperimentalBuild"):
            return "the engine is not started with --experimental"
        return restored(engine.api, image)
    except (docker.errors.APIError, OSError) as error:
        return f"the engine refused: {error}"
    finally:
        engine.close()


def restored(api: Any, image: str) -> str:
    """Why a counting container did not go on after its restore; empty where it did."""
    made = api.create_container(image, ["sh", "-c", _COUNT], host_config=api.create_host_config(network_mode="none"))
    container, name = made["Id"], f"probe-{secrets.token_hex(4)}"
    try:
        api.start(container)
        time.sleep(COUNT_S)
        # The SDK has no call for checkpoints.
        where, asked = f"{api.base_url}/v{api.api_version}/containers/{container}", {"CheckpointID": name, "Exit": True}
        _checked(api.post(f"{where}/checkpoints", json=asked, timeout=_WAIT_S))
        until = time.monotonic() + _WAIT_S
        while api.inspect_container(container)["State"]["Running"] and time.monotonic() < until:
            time.sleep(0.1)
        before = _count(api, container)
        _checked(api.post(f"{where}/start", params={"checkpoint": name}, timeout=_WAIT_S))
        time.sleep(COUNT_S)
        after = _count(api, container)
        return "" if after > before else f"the count stood at {after} after the restore"
    finally:
        api.remove_container(container, force=True, v=True)


def _checked(answer: Any) -> None:
    if not answer.ok:
        raise OSError(answer.text.strip()[:300])


def _count(api: Any, container: str) -> int:
    chunks, _ = api.get_archive(container, "/count")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        found = archive.extractfile("count")
        return int(found.read() or b"0") if found is not None else 0


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "it failed without a word"
