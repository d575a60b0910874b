"""Where an engine's processes meet: one folder of sockets for each trainer, that goes when the trainer does.

vLLM names its sockets by chance, puts them into the folder for temporary files, and leaves them there, seven for each
start. Promised: with ``VLLM_RPC_BASE_PATH`` unset they lie in a folder of ours, which is removed at the end of this
process; after a kill by its engines (`trainer.engines.orphans`) or by the next trainer. The engines' other temporary
files lie in it too, and a note of their shared memory (`trainer.engines.segments`), which goes with it.
"""

from __future__ import annotations

import atexit
import functools
import getpass
import multiprocessing
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from trainer.engines.orphans import alive
from trainer.engines.segments import note_segments, remove_noted

FOLDER = "VLLM_RPC_BASE_PATH"
_NAME = re.compile(r"^envsdk-engine-(\d+)-\w+$")


def keep_sockets_together() -> None:
    """Have the engines that this process starts put their sockets into its folder, unless the user has named one."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = str(_folder())


def note_shared_memory() -> None:
    """Write down what the engines of this process have mapped; where the user named the folder, nothing."""
    if os.environ.get(FOLDER) == str(_folder()):
        note_segments(_folder(), (child.pid for child in multiprocessing.active_children() if child.pid is not None))


def remove_abandoned_sockets(root: Path) -> list[Path]:
    """Remove the folders under ``root`` whose trainer is gone, with the shared memory noted; returns the folders."""
    gone = [
        path for path in root.glob("envsdk-engine-*") if (name := _NAME.match(path.name)) and not alive(int(name[1]))
    ]
    for path in gone:
        remove_noted(path)
        shutil.rmtree(path, ignore_errors=True)
    return gone


def folders_root() -> Path:
    """Where the trainers' folders lie; in an engine's process, whose temporary files lie in one of them, too."""
    folder = Path(os.environ.get(FOLDER, ""))
    return folder.parent if _NAME.match(folder.name) else Path(tempfile.gettempdir())


def keep_temporary_files_there() -> None:
    """In an engine's process: have the files that vLLM leaves (``vllm_dist_*``) lie in the trainer's folder."""
    folder = os.environ.get(FOLDER, "")
    if _NAME.match(Path(folder).name) and Path(folder).is_dir():
        with suppress(OSError, KeyError):  # a user without a name
            # What torch compiled is kept for the next engine, where it is by default.
            cache = Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
        tempfile.tempdir = folder


@functools.cache
def _folder() -> Path:
    root = Path(tempfile.gettempdir())
    remove_abandoned_sockets(root)
    folder = Path(tempfile.mkdtemp(prefix=f"envsdk-engine-{os.getpid()}-", dir=root))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
