"""Tensors in a safetensors file: written with the system's refusals told as such, and looked at before they are read.

Promised: a full disk is an `OSError`, as for every other file; `damage` finds a file that was cut off or is none, from
its header and its size. Not promised: that a value within is as it was written (`trainer.checkpoint` keeps checksums).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_LENGTH_BYTES = 8
_MAX_HEADER = 100 << 20  # the format's own limit
_SYSTEM_ERROR = re.compile(r"os error (\d+)")


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path, *, metadata: dict[str, str] | None = None) -> None:
    """Write a file. Raises OSError where the system refuses it."""
    from safetensors.torch import save_file

    with refusals(path):
        save_file(dict(tensors), path, metadata)


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Within, what the system refuses the format's library at ``path`` is an `OSError`, as for every other file."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        found = _SYSTEM_ERROR.search(str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), str(error), str(path)) from error


def damage(path: Path) -> str:
    """What keeps a file from being whole, in words; empty where its size is what its header says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if not 0 < length <= min(_MAX_HEADER, size - _LENGTH_BYTES):
            return "it is no safetensors file, or was cut off"
        try:
            header = json.loads(file.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            expected = _LENGTH_BYTES + length + max(ends, default=0)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return "its header is damaged"
    return "" if size == expected else f"it has {size} bytes where its header says {expected}"
