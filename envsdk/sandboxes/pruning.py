"""Built images and kept set-ups that nobody used for long: listed, and removed by age or to fit a budget.

An image is used when it is looked up or a sandbox starts from it. What was used within the lease of an owner (six
hours), and what a sandbox runs on, is never removed; a task whose image is gone has it built again. Base images and
exported trees are not ours to remove. One pruning at a time, behind a lock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from filelock import FileLock, Timeout

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.home import images_dir
from envsdk.sandboxes.bubblewrap_store import Store
from envsdk.sandboxes.disk import folder_mib
from envsdk.sandboxes.docker_engine import Engine
from envsdk.sandboxes.docker_images import used_at
from envsdk.sandboxes.owner import LEASE_S

MAX_AGE_S = 30 * 86_400.0
_MIB = 1 << 20
_BUILD_S = 3600.0  # an image's own steps were made within this of its last one


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """One image that was built or set up here; ``size_mib`` is its own part, without what it stands on."""

    back_end: str
    name: str
    size_mib: float
    used_at: float


def choose(
    images: Iterable[BuiltImage], *, now: float, max_age_s: float = MAX_AGE_S, budget_mib: float | None = None
) -> list[BuiltImage]:
    """What to remove, longest unused first: what is too old, and what is over the budget then."""
    left = sorted(images, key=lambda image: image.used_at)
    chosen = [image for image in left if now - image.used_at > max(max_age_s, LEASE_S)]
    total = sum(image.size_mib for image in left) - sum(image.size_mib for image in chosen)
    for image in left[len(chosen) :]:
        if budget_mib is None or total <= budget_mib or now - image.used_at <= LEASE_S:
            break
        chosen.append(image)
        total -= image.size_mib
    return chosen


def bubblewrap_images(store: Store) -> list[BuiltImage]:
    """The store's images that have a layer of their own."""
    found = []
    for path in (store.root / "images").glob("[!.]*.json"):
        image = store.read(path.stem)
        if image is not None and image.layers[-1].startswith("i"):
            size = folder_mib(store.layer(image.layers[-1]))
            found.append(BuiltImage("bubblewrap", image.id, size, path.stat().st_mtime))
    return found


def remove_bubblewrap(store: Store, names: Iterable[str]) -> list[str]:
    """Remove images, then the layers that no image and no sandbox needs any more; returns the images' names."""
    gone = []
    for name in names:
        (store.root / "images" / f"{name}.json").unlink(missing_ok=True)
        gone.append(name)
    needed = store.layers_in_use()
    for layer in (store.root / "l").glob("i*"):
        # One without an image yet may be a build that is about to name it.
        if layer.name not in needed and time.time() - layer.stat().st_ctime > LEASE_S:
            store.drop_layer(layer.name)
    return gone


async def docker_images(engine: Engine) -> list[BuiltImage]:
    """The engine's images that were built or set up here, by tag."""
    found = []
    for image in await engine.call(engine.api.images, filters={"label": ["envsdk.kind=image"]}):
        for tag in image.get("RepoTags") or []:
            steps = await engine.call(engine.api.history, tag)
            own = sum(
                float(step["Size"]) for step in steps if float(step["Created"]) >= float(image["Created"]) - _BUILD_S
            )
            found.append(BuiltImage("docker", str(tag), own / _MIB, used_at(str(tag), float(image["Created"]))))
    return found


async def remove_docker(engine: Engine, names: Iterable[str]) -> list[str]:
    """Untag and remove images; what a container runs on stays. Returns the names of what went."""
    gone = []
    for name in names:
        try:
            await engine.call(engine.api.remove_image, name)
        except SandboxError as error:
            if error.code not in {"engine_refused", "no_such_object"}:
                raise
            continue
        gone.append(name)
    return gone


async def list_built() -> list[BuiltImage]:
    """Of both back ends, as far as they are here."""
    found = await asyncio.to_thread(bubblewrap_images, Store())
    engine = await _engine()
    if engine is not None:
        try:
            found += await docker_images(engine)
        finally:
            engine.close()
    return found


async def prune(
    *, max_age_s: float = MAX_AGE_S, budget_mib: float | None = None, is_trial: bool = False
) -> list[BuiltImage]:
    """Remove what `choose` chooses of both back ends; returns what went, or would go in a trial.

    Raises `SandboxError` (``prune_busy``) while another process prunes.
    """
    images_dir().mkdir(parents=True, exist_ok=True)
    lock = FileLock(images_dir() / "prune.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise SandboxError("another process prunes images now", code="prune_busy", hint="run it again later") from error
    try:
        chosen = choose(await list_built(), now=time.time(), max_age_s=max_age_s, budget_mib=budget_mib)
        if is_trial:
            return chosen
        names = {kind: [image.name for image in chosen if image.back_end == kind] for kind in ("bubblewrap", "docker")}
        gone = {("bubblewrap", name) for name in remove_bubblewrap(Store(), names["bubblewrap"])}
        engine = await _engine() if names["docker"] else None
        if engine is not None:
            try:
                gone |= {("docker", name) for name in await remove_docker(engine, names["docker"])}
            finally:
                engine.close()
        return [image for image in chosen if (image.back_end, image.name) in gone]
    finally:
        lock.release()


async def _engine() -> Engine | None:
    try:
        return await asyncio.to_thread(Engine.connect)
    except PrerequisiteError:
        return None
