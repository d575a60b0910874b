"""Author tasks, run them in sandboxes, prove their verifiers.

    from envsdk import Draw, task, verifier

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envsdk.authoring import (
        Draw,
        Family,
        Script,
        Step,
        family,
        find_tasks,
        oracle,
        registered_families,
        task,
        verifier,
    )
    from envsdk.spec.load import load_task, load_tasks
    from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, Example, ServiceSpec, Task, TaskSpec

_HOME = {
    **dict.fromkeys(
        (
            "Draw",
            "Family",
            "Script",
            "Step",
            "family",
            "find_tasks",
            "oracle",
            "registered_families",
            "task",
            "verifier",
        ),
        "envsdk.authoring",
    ),
    **dict.fromkeys(("load_task", "load_tasks"), "envsdk.spec.load"),
    **dict.fromkeys(
        ("AgentSpec", "Budget", "ContainerSpec", "Example", "ServiceSpec", "Task", "TaskSpec"), "envsdk.spec.model"
    ),
}

__all__ = [
    "AgentSpec",
    "Budget",
    "ContainerSpec",
    "Draw",
    "Example",
    "Family",
    "Script",
    "ServiceSpec",
    "Step",
    "Task",
    "TaskSpec",
    "family",
    "find_tasks",
    "load_task",
    "load_tasks",
    "oracle",
    "registered_families",
    "task",
    "verifier",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'envsdk' has no attribute {name!r}")
