"""Runs a Python verifier inside a sandbox that has no envsdk: written into a task as ``tests/run_verifier.py``.

    run_verifier.py FUNCTION text|state ANSWER_PATH

Calls ``FUNCTION`` of ``verifier.py`` beside it with the answer, or with a read handle on the file system, and the
values of ``params.json`` by keyword; writes ``/logs/verifier/reward.json``. A verifier that raises leaves no reward and
exits 1. Imports nothing but the standard library of Python 3.9.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

RESULTS = Path("/logs/verifier")
MAX_READ_BYTES = 16 << 20


class Handle:
    """The end state as it lies in this box; the agent's processes are gone."""

    def read(self, path: str) -> bytes:
        """A file's bytes; a missing one is `FileNotFoundError`, a too large one `ValueError`."""
        if not Path(path).is_file():
            raise FileNotFoundError(path)
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_READ_BYTES + 1)
        if len(data) > MAX_READ_BYTES:
            raise ValueError(f"{path} is larger than {MAX_READ_BYTES} bytes")
        return data

    def exists(self, path: str) -> bool:
        """There is something at ``path``."""
        return Path(path).exists()

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(os.listdir(path))  # noqa: PTH208 - names, not paths


class Anything:
    """Stands for every name of envsdk: a decorator that gives back its function, and otherwise nothing."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        is_decorated = len(args) == 1 and not options and isinstance(args[0], types.FunctionType)
        if is_decorated and self._name == "oracle":
            return Anything()  # @oracle(task) is given the task, and only then the function it decorates
        return args[0] if is_decorated else self

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __or__(self, other: object) -> Anything:
        return self

    __ror__ = __getitem__ = __or__


class Stub(types.ModuleType):
    """A module of envsdk that is not here."""

    __path__ = ()  # type: ignore[assignment] # a package, so that its submodules are looked for

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of envsdk, which decorated modules make and verifiers do not need."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the protocol's arguments
        is_ours = name.partition(".")[0] == "envsdk"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_ours else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def load(path: Path, function: str) -> Any:
    """The verifier function of the module at ``path``."""
    sys.meta_path.append(Finder())
    spec = importlib.util.spec_from_file_location("verifier", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["verifier"] = module
    spec.loader.exec_module(module)
    return getattr(module, function)


def rewards_of(value: Any) -> dict[str, float]:
    """What a verifier returned, as numbers by name."""
    if isinstance(value, dict):
        return {name: float(number) for name, number in value.items()}
    return {"reward": float(value)}


def read_answer(path: str) -> str:
    """The answer as text; missing is empty."""
    try:
        return Handle().read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def main(function: str, kind: str, answer: str) -> None:
    """Judge, then write the reward whole or not at all."""
    here = Path(__file__).resolve().parent
    params = here / "params.json"
    values = json.loads(params.read_text(encoding="utf-8")) if params.exists() else {}
    subject = Handle() if kind == "state" else read_answer(answer)
    rewards = rewards_of(load(here / "verifier.py", function)(subject, **values))
    RESULTS.mkdir(parents=True, exist_ok=True)
    draft = RESULTS / ".reward.json"
    draft.write_text(json.dumps(rewards, allow_nan=False), encoding="utf-8")
    draft.replace(RESULTS / "reward.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
