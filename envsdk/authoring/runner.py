"""Runs a Python verifier inside a sandbox that has no envsdk: written into a task as ``tests/run_verifier.py``.

    run_verifier.py FUNCTION text|state ANSWER_PATH

Calls ``FUNCTION`` of ``verifier.py`` beside it with the answer, or with a read handle on the file system, and the
values of ``params.json`` by keyword; writes ``/logs/verifier/reward.json``. A verifier that raises leaves no reward and
exits 1. Imports nothing but the standard library of Python 3.9, and from ``_envsdk`` beside it what of envsdk the
verifier needs: the read handle, the graders.
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
MAX_ANSWER_BYTES = 16 << 20


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
    """Answers imports of envsdk: from ``root`` what lies there, else by a stub, which is enough for a decorator."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the protocol's arguments
        ours, *parts = name.split(".")
        if ours != "envsdk":
            return None
        place = self._root.joinpath(*parts)
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if parts and file.is_file():
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def load(path: Path, function: str) -> Any:
    """The verifier function of the module at ``path``."""
    sys.meta_path.insert(0, Finder(path.with_name("_envsdk")))
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
    if not Path(path).is_file():
        return ""
    with Path(path).open("rb") as stream:
        data = stream.read(MAX_ANSWER_BYTES + 1)
    if len(data) > MAX_ANSWER_BYTES:
        raise ValueError(f"{path} is larger than {MAX_ANSWER_BYTES} bytes")
    return data.decode("utf-8", "replace")


def state() -> Any:
    """The read handle on the end state as it lies in this box; the agent's processes are gone."""
    module = importlib.import_module("envsdk.authoring.state")
    return module.FolderState(Path("/"))


def main(function: str, kind: str, answer: str) -> None:
    """Judge, then write the reward whole or not at all."""
    here = Path(__file__).resolve().parent
    if os.geteuid() == 0:
        here.chmod(0o700)  # what the verifier runs as another user reads neither it nor its params
    params = here / "params.json"
    values = json.loads(params.read_text(encoding="utf-8")) if params.exists() else {}
    judge = load(here / "verifier.py", function)
    rewards = rewards_of(judge(state() if kind == "state" else read_answer(answer), **values))
    RESULTS.mkdir(parents=True, exist_ok=True)
    draft = RESULTS / ".reward.json"
    draft.write_text(json.dumps(rewards, allow_nan=False), encoding="utf-8")
    draft.replace(RESULTS / "reward.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
