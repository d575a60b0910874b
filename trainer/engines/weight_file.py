"""One file of weights that trainer and engines map: laid out once, then only its values change.

It is a safetensors file (8 bytes header length, JSON header, data), so any tool can read it. In the header stands a
stamp of fixed width: the version whose values the file holds, or blank while they are being written. A reader asks for
a version and refuses a file that is torn or holds another. Rewriting 270 MB takes 0.02 s where a new file takes 0.12 s
(the pages exist already). Not promised: a lock; writer and readers take turns under `trainer.weights`.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsdk.errors import EngineError, StoreError
from trainer.engines.orphans import alive

if TYPE_CHECKING:
    import torch

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory is the point
WEIGHTS_FOLDER = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
_STAMP_WIDTH = 20
_BLANK = "-" * _STAMP_WIDTH
_NAME = re.compile(r"^envsdk-weights-(\d+)-\w+\.safetensors$")
_SAME_MODEL = "a file is laid out for one model: restart the run to train another"
_DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


class WeightFile:
    """The writer's side. Close it to remove the file."""

    def __init__(self, path: Path, header: dict[str, Any], stamp_at: int, data_at: int, mapped: mmap.mmap) -> None:
        self.path = path
        self._header = header
        self._stamp_at = stamp_at
        self._data_at = data_at
        self._mapped = mapped
        self._views: dict[str, torch.Tensor] = {}

    @classmethod
    def lay_out(cls, tensors: Iterable[tuple[str, torch.Tensor]], *, dtype: torch.dtype, folder: Path) -> WeightFile:
        """Make a file with room for ``tensors`` stored as ``dtype``. No values are written yet.

        Raises:
            StoreError: ``no_space``: the folder cannot hold the file.
        """
        remove_abandoned(folder)
        header, size = _layout(tensors, dtype)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        handle, name = tempfile.mkstemp(prefix=f"envsdk-weights-{os.getpid()}-", suffix=".safetensors", dir=folder)
        path = Path(name)
        try:
            os.posix_fallocate(handle, 0, 8 + len(text) + size)  # a full /dev/shm must fail here, not by SIGBUS later
            os.pwrite(handle, len(text).to_bytes(8, "little") + text, 0)
            mapped = mmap.mmap(handle, 8 + len(text) + size)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StoreError(
                f"no room for {size >> 20} MiB of weights: {error}",
                code="no_space",
                hint="free memory, or enlarge the shared memory file system",
                where=str(folder),
            ) from error
        finally:
            os.close(handle)
        return cls(path, header, 8 + text.index(_BLANK.encode()), 8 + len(text), mapped)

    def write(self, tensors: Iterable[tuple[str, torch.Tensor]], *, version: int) -> None:
        """Replace all values, cast to the file's dtype, and stamp the file with ``version``.

        Raises:
            StoreError: ``layout_changed``: a tensor is missing, new, or of another shape.
        """
        self._stamp(_BLANK)
        missing = set(self._header) - {"__metadata__"}
        for name, tensor in tensors:
            view = self._view(name)
            if view is None or view.shape != tensor.shape:
                raise StoreError(
                    f"the weight file has no room for {name} {tuple(tensor.shape)}",
                    code="layout_changed",
                    hint=_SAME_MODEL,
                    where=str(self.path),
                )
            view.copy_(tensor.detach())
            missing.discard(name)
        if missing:
            what = f"no values for {sorted(missing)[:3]}"
            raise StoreError(what, code="layout_changed", where=str(self.path), hint=_SAME_MODEL)
        self._stamp(f"{version:0{_STAMP_WIDTH}d}")

    def close(self) -> None:
        """Remove the file. Engines that have it mapped keep their mapping."""
        self._views.clear()
        self.path.unlink(missing_ok=True)

    def _stamp(self, text: str) -> None:
        self._mapped[self._stamp_at : self._stamp_at + _STAMP_WIDTH] = text.encode()

    def _view(self, name: str) -> torch.Tensor | None:
        if name not in self._views and name in self._header:
            self._views[name] = _tensor(self._mapped, self._header[name], self._data_at)
        return self._views.get(name)


class WeightReader:
    """A reader's side: maps the file once and yields views into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), 0)
        length = int.from_bytes(self._mapped[:8], "little")
        self._header = json.loads(self._mapped[8 : 8 + length])
        self._data_at = 8 + length

    def tensors(self, *, version: int) -> Iterator[tuple[str, torch.Tensor]]:
        """Every (name, tensor), the tensors being views that live as long as the reader.

        Raises:
            EngineError: ``stale_weights``: the file holds another version, or is being written.
        """
        self._require(version)
        for name, entry in self._header.items():
            if name != "__metadata__":
                yield name, _tensor(self._mapped, entry, self._data_at)
        self._require(version)

    def _require(self, version: int) -> None:
        start = self._mapped.find(b'"version":"') + len(b'"version":"')
        stamp = self._mapped[start : start + _STAMP_WIDTH].decode()
        if stamp != f"{version:0{_STAMP_WIDTH}d}":
            found = "values being written" if stamp == _BLANK else f"version {int(stamp)}"
            raise EngineError(
                f"asked for version {version}, the weight file holds {found}",
                code="stale_weights",
                hint="the writer was cut off, or another run writes the same file: restart the run",
                where=str(self.path),
            )


def remove_abandoned(folder: Path) -> list[Path]:
    """Remove weight files whose writer is gone (it was killed), as far as they are ours; returns what was removed."""
    removed = []
    for path in folder.glob("envsdk-weights-*.safetensors"):
        match = _NAME.match(path.name)
        if match and not alive(int(match[1])):
            with suppress(PermissionError):  # another user's, in a folder that all share
                path.unlink(missing_ok=True)
                removed.append(path)
    return removed


def _layout(tensors: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype) -> tuple[dict[str, Any], int]:
    kind = _DTYPES[str(dtype).removeprefix("torch.")]
    header: dict[str, Any] = {"__metadata__": {"version": _BLANK}}
    offset = 0
    for name, tensor in tensors:
        end = offset + tensor.numel() * dtype.itemsize
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    return header, offset


def _tensor(mapped: mmap.mmap, entry: dict[str, Any], data_at: int) -> torch.Tensor:
    import torch

    dtype = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}[entry["dtype"]]
    start, end = entry["data_offsets"]
    count = (end - start) // dtype.itemsize
    return torch.frombuffer(mapped, dtype=dtype, count=count, offset=data_at + start).view(entry["shape"])
