"""Write tasks as Python functions: decorators, families, and how they become directories."""

from __future__ import annotations

from envsdk.authoring.declare import Script, family, oracle, task, verifier
from envsdk.authoring.draw import Draw, Step
from envsdk.authoring.families import Family
from envsdk.authoring.find import find_tasks, get_family, registered_families

__all__ = [
    "Draw",
    "Family",
    "Script",
    "Step",
    "family",
    "find_tasks",
    "get_family",
    "oracle",
    "registered_families",
    "task",
    "verifier",
]
