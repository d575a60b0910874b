"""Whether a folder holds a whole model, told from its files before an engine spends half a minute on it.

Promised: what is missing or cut off is named. Not promised: that an engine can run such a model, or that a value in it
is right.
"""

from __future__ import annotations

import json
from pathlib import Path

from trainer.tensor_file import damage

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")


def model_fault(folder: Path) -> str:
    """What keeps a folder from being a model, in words; empty where nothing does. Raises OSError: it cannot be read."""
    if not (folder / _CONFIG).is_file():
        return f"the folder holds no {_CONFIG}"
    if not isinstance(_json(folder / _CONFIG), dict):
        return f"{_CONFIG} is no JSON object"
    if not any(found.is_file() for pattern in _WEIGHTS for found in folder.glob(pattern)):
        return "the folder holds no weights"
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        return "the folder holds no tokenizer"
    return _lost_part(folder) or _cut_off(folder)


def _lost_part(folder: Path) -> str:
    if not (folder / _INDEX).is_file():
        return ""
    index = _json(folder / _INDEX)
    parts = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(parts, dict):
        return f"{_INDEX} is damaged"
    return next((f"{part} is missing" for part in parts.values() if not (folder / str(part)).is_file()), "")


def _cut_off(folder: Path) -> str:
    found = ((path.name, damage(path)) for path in sorted(folder.glob("*.safetensors")))
    return next((f"{name} is damaged: {fault}" for name, fault in found if fault), "")


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
