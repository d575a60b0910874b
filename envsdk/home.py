"""Where envsdk keeps what it makes: the data folder and the names inside it.

``ENVSDK_HOME`` names the folder; without it, it is the platform's user data folder. Functions return paths and create
nothing: whoever writes creates. Nothing else in the project computes a path under the data folder.

    home()
    |-- models/<name>/        converted models, ready for an engine
    |-- rootfs/<image>/       file trees that bubblewrap uses as a root, one for each image reference
    |-- images/               what sandboxes build and cache
    |-- services/             pid files, logs and data of servers that the project starts itself
    |-- checks/               reports of checked tasks, by digest
    |-- blobs/                the registry's task files
    `-- registry.sqlite       the registry's embedded default
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import platformdirs

BASE_IMAGE = "envsdk-base:bookworm"
"""The image every bundled task builds on; ``make setup`` makes it, and its tree under `rootfs_dir`."""


def home() -> Path:
    """The data folder, absolute: ``ENVSDK_HOME`` where set and not empty, else the platform's user data folder."""
    given = os.environ.get("ENVSDK_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    return platformdirs.user_data_path("envsdk", appauthor=False)


def models_dir() -> Path:
    """Folder of converted models, one directory each."""
    return home() / "models"


def rootfs_dir(image: str = BASE_IMAGE) -> Path:
    """The file tree of a local image reference, for sandboxes without an engine.

    ``envsdk-base:bookworm`` lies at ``rootfs/envsdk-base-bookworm``. Characters that are not safe in a file name
    become dashes, so that a reference can never point outside the folder.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", image).strip(".-")
    return home() / "rootfs" / (safe or "unnamed")


def images_dir() -> Path:
    """Folder for what sandboxes build and cache (layers, unpacked trees of built images)."""
    return home() / "images"


def services_dir() -> Path:
    """Folder of pid files, logs and data of servers that the project starts itself."""
    return home() / "services"


def checks_dir() -> Path:
    """Reports of checks, one file for each task's content."""
    return home() / "checks"


def blobs_dir() -> Path:
    """The registry's content-addressed store of task files, unless a URL names another."""
    return home() / "blobs"


def registry_path() -> Path:
    """The registry's embedded database, unless ``ENVSDK_REGISTRY`` names another."""
    return home() / "registry.sqlite"
