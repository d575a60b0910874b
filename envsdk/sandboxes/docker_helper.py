"""The helper inside Docker containers: one read-only volume for all of them, named by its content.

A volume, not a bind mount, because the engine may be on another machine. It also carries the machine's static busybox,
where it has one, as a shell for images without any.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from envsdk.sandboxes.docker_engine import Engine, new_labels
from envsdk.sandboxes.program import helper_path

HELPER_DIR = "/run/envsdk"
_BUSYBOX = (Path("/bin/busybox"), Path("/usr/bin/busybox"))


def helper_files() -> dict[str, bytes]:
    """What the volume holds: the helper, and a static busybox where the machine has one."""
    files = {"helper": helper_path().read_bytes()}
    for path in _BUSYBOX:
        if path.is_file() and b"ld-linux" not in (content := path.read_bytes())[:4096]:
            files["busybox"] = content
            break
    return files


async def helper_volume(engine: Engine, image: str) -> str:
    """Name of the volume, made and filled if it is not there yet. ``image`` is any local image to fill it through."""
    files = helper_files()
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in sorted(files.items()))).hexdigest()
    name = f"envsdk-helper-{digest[:16]}"
    present = await engine.call(engine.api.volumes, filters={"name": name})
    if any((volume.get("Labels") or {}).get("envsdk.kind") == "helper" for volume in present.get("Volumes") or []):
        return name
    api = engine.api
    host = api.create_host_config(binds={f"{name}": {"bind": HELPER_DIR, "mode": "rw"}}, network_mode="none")
    await engine.call(api.create_volume, name, labels={"envsdk.kind": "helper"})
    made = await engine.call(
        api.create_container, image, command=["/"], host_config=host, labels=new_labels(kind="filler")
    )
    try:
        await engine.put_file(made["Id"], HELPER_DIR, files)
    finally:
        await engine.remove(made["Id"])
    return name
