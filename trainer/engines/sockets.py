"""Where an engine's processes meet: one folder of sockets for each trainer, that goes when the trainer does.

vLLM names its sockets by chance, puts them into the folder for temporary files, and leaves them there, seven for each
start. Promised: with ``VLLM_RPC_BASE_PATH`` unset they lie in a folder of ours, which is removed at the end of this
process; after a kill by its engines (`trainer.engines.orphans`) or by the next trainer.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

from trainer.engines.orphans import alive

FOLDER = "VLLM_RPC_BASE_PATH"
_NAME = re.compile(r"^envsdk-engine-(\d+)-\w+$")


def keep_sockets_together() -> None:
    """Have the engines that this process starts put their sockets into its folder, unless the user has named one."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = str(_folder())


def remove_abandoned_sockets(root: Path) -> list[Path]:
    """Remove the folders under ``root`` whose trainer is gone; returns what was removed."""
    gone = [
        path for path in root.glob("envsdk-engine-*") if (name := _NAME.match(path.name)) and not alive(int(name[1]))
    ]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return gone


@functools.cache
def _folder() -> Path:
    root = Path(tempfile.gettempdir())
    remove_abandoned_sockets(root)
    folder = Path(tempfile.mkdtemp(prefix=f"envsdk-engine-{os.getpid()}-", dir=root))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
