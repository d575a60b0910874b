"""Entries of trees and archives as conformance cases write them: their names and contents as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def content_of(entry: Mapping[str, Any]) -> bytes:
    """Bytes of an entry: ``text``, ``hex``, or ``fill`` = ``unit`` repeated ``times``; empty where it has none."""
    if "fill" in entry:
        return str(entry["fill"]["unit"]).encode() * int(entry["fill"]["times"])
    if "hex" in entry:
        return bytes.fromhex(entry["hex"])
    return str(entry.get("text", "")).encode()


def name_of(entry: Mapping[str, Any]) -> bytes:
    """The name of an entry as bytes: ``path_hex`` where it is no UTF-8."""
    return bytes.fromhex(entry["path_hex"]) if "path_hex" in entry else str(entry["path"]).encode()
