"""How a sandbox's container is created: the hardening, the limits, the helper as first process."""

from __future__ import annotations

from typing import Any

from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.docker_engine import new_labels
from envsdk.sandboxes.docker_helper import HELPER_DIR
from envsdk.sandboxes.limits import OPEN_FILES, SHM_MIB, bounds

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")


def create_arguments(api: Any, spec: SandboxSpec, volume: str, name: str, *, parent: str = "") -> dict[str, Any]:
    """Keyword arguments of ``create_container``; ``parent`` is the control group to be under, if not the engine's own.

    An allow-listed network has no way out either: its proxy is at the sandbox's loopback.
    """
    named = None
    if spec.join and name:
        named = api.create_networking_config({spec.join: api.create_endpoint_config(aliases=[name])})
    return {
        "entrypoint": [f"{HELPER_DIR}/helper"],
        "command": [],
        "user": "0:0",
        "working_dir": "/",
        "hostname": "sandbox",
        "stdin_open": True,
        "labels": new_labels(kind="sandbox"),
        "host_config": api.create_host_config(**_host_options(spec, volume), cgroup_parent=parent or None),
        "networking_config": named,
        # The container then gets a network namespace with a loopback from the runtime itself. The engine's own way to
        # the same, network mode "none", runs one more copy of the engine for each start: twice the time.
        "network_disabled": _network_mode(spec) == "none",
    }


def _host_options(spec: SandboxSpec, volume: str) -> dict[str, Any]:
    limit = bounds(spec.limits)
    return {
        "network_mode": _network_mode(spec),
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "pids_limit": limit.pids,
        "mem_limit": f"{limit.memory_mib}m",
        "memswap_limit": f"{limit.memory_mib}m",
        "nano_cpus": int(limit.cpus * 1e9),
        "shm_size": f"{SHM_MIB}m",
        "binds": {volume: {"bind": HELPER_DIR, "mode": "ro"}},
        "log_config": {"Type": "none"},
        "ulimits": [
            {"Name": "fsize", "Soft": limit.disk_mib << 20, "Hard": limit.disk_mib << 20},
            {"Name": "nofile", "Soft": OPEN_FILES, "Hard": OPEN_FILES},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
    }


def _network_mode(spec: SandboxSpec) -> str:
    return {"internal": spec.join or "none", "public": "bridge"}.get(spec.network, "none")
