"""Images of the bubblewrap back end: stacks of frozen folders, and where they lie.

    images_dir()/bubblewrap/
    |-- l/<id>              layers: a root file tree, or what a build or a snapshot wrote over the layers under it
    |-- images/<id>.json    an image: its layers (lowest first), environment, command, where it came from
    |-- locks/, logs/       of builds
    `-- boxes/<owner>/<id>  the writable folders of running sandboxes

A layer never changes once it has a name. Short relative names keep an overlay's mount options under one page.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
from pathlib import Path

from pydantic import Field

from envsdk.errors import SandboxError
from envsdk.frozen import Frozen
from envsdk.home import images_dir
from envsdk.sandboxes.disk import remove_tree
from envsdk.sandboxes.owner import this_owner

PREFIX = "bubblewrap:"
MAX_LAYERS = 100


class TreeImage(Frozen):
    """An image as a stack of layers; ``layers`` are names under ``l/``, lowest first."""

    id: str
    layers: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)
    workdir: str = ""
    user: str = ""
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    origin: dict[str, str] = Field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The pinned reference, as `SandboxSpec.image` takes it."""
        return PREFIX + self.id


class Store:
    """The folder of layers and images. Safe for many processes: names are written last, by renaming."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or images_dir() / "bubblewrap"
        for name in ("l", "images", "locks", "logs", "boxes"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._images: dict[str, TreeImage] = {}

    def image(self, reference: str) -> TreeImage | None:
        """The image of a pinned reference, or `None`."""
        if not reference.startswith(PREFIX):
            return None
        name = reference.removeprefix(PREFIX)
        if name not in self._images and (found := self.read(name)) is not None:
            self._images[name] = found
        return self._images.get(name)

    def read(self, name: str) -> TreeImage | None:
        """An image as it is on disk now, or `None`."""
        try:
            return TreeImage.model_validate_json((self.root / "images" / f"{name}.json").read_text(encoding="utf-8"))
        except OSError:
            return None

    def note_use(self, image: TreeImage) -> bool:
        """Remember that an image was used now; false where it was pruned meanwhile."""
        try:
            os.utime(self.root / "images" / f"{image.id}.json")
        except OSError:
            self._images.pop(image.id, None)
            return False
        return True

    def layers_in_use(self) -> set[str]:
        """Layers that an image on disk or a sandbox of any process stands on."""
        needed: set[str] = set()
        for path in (self.root / "images").glob("[!.]*.json"):
            image = self.read(path.stem)
            needed.update(image.layers if image is not None else ())
        for path in (self.root / "boxes").glob("*/*/layers"):
            with contextlib.suppress(OSError):  # its sandbox has just ended
                needed.update(path.read_text(encoding="ascii").split())
        return needed

    def save(self, image: TreeImage) -> TreeImage:
        """Give an image its name."""
        part = self.root / "images" / f".{image.id}.{os.getpid()}.{threading.get_ident()}.part"
        part.write_text(json.dumps(image.model_dump(mode="json"), indent=1), encoding="utf-8")
        part.replace(self.root / "images" / f"{image.id}.json")
        self._images[image.id] = image
        return image

    def layer(self, name: str) -> Path:
        """Folder of a layer."""
        return self.root / "l" / name

    def link_layer(self, name: str, tree: Path) -> None:
        """Let a folder that lies elsewhere be the layer ``name``."""
        link = self.layer(name)
        part = link.with_name(f".{name}.{secrets.token_hex(4)}")
        part.symlink_to(tree.resolve())
        part.replace(link)

    def freeze(self, folder: Path, name: str) -> str:
        """Make a sandbox's written folder a layer; nothing may be mounted over it any more."""
        folder.rename(self.layer(name))
        return name

    def drop_layer(self, name: str) -> None:
        """Remove a layer that no image and no sandbox uses any more."""
        remove_tree(self.layer(name))

    def options(self, layers: tuple[str, ...]) -> str:
        """The ``lowerdir`` of an overlay over these layers. Raises `SandboxError` (``too_many_layers``)."""
        if len(layers) > MAX_LAYERS:
            raise SandboxError(
                f"{len(layers)} layers are stacked; the kernel's mount options hold {MAX_LAYERS}",
                code="too_many_layers",
                hint="build an image from the set-up instead of forking forks",
            )
        return "lowerdir=" + ":".join(f"l/{name}" for name in reversed(layers))

    def boxes(self) -> Path:
        """Folder of this process's running sandboxes."""
        folder = self.root / "boxes" / str(this_owner())
        folder.mkdir(exist_ok=True)
        return folder
