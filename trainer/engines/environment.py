"""What vLLM and the threads of a shared CPU want to find in the environment; what the user has set stays.

Called before torch is imported where possible: the OpenMP runtime reads its settings once, when it is loaded. Called
again before each replica starts, since replicas on a CPU differ in their threads.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from trainer.engines.orphans import OWNED

_made: dict[str, str] = {}
"""What was set here, and is therefore not the user's."""


def built_for_cpu() -> bool:
    """Whether the installed vLLM computes on a CPU, told as vLLM tells it: by the distribution. True without any."""
    try:
        return "cpu" in version("vllm")
    except PackageNotFoundError:
        return True


def compiles(compiled: bool | None, *, cpu: bool) -> bool:
    """Whether the engine's model is compiled; `None`: on a GPU, where it is what vLLM is fast by."""
    return not cpu if compiled is None else compiled


def threads_of(replica: int, of: int) -> str:
    """CPU ids of one of so many replicas: its part of what this process may use, or all where there are too few."""
    cpus = sorted(os.sched_getaffinity(0))
    each = len(cpus) // of
    mine = cpus[replica * each : (replica + 1) * each] if each else cpus
    return ",".join(str(cpu) for cpu in (cpus if of == 1 else mine))


def prepare_environment(*, kv_cache_gib: int, threads: str, compiled: bool | None) -> None:
    """Set the variables that this process and the engines it spawns will read.

    Args:
        kv_cache_gib: memory of the KV cache on a CPU.
        threads: CPU ids that an engine computes on, comma separated; empty for all that this process may use.
        compiled: the engine's model is compiled; `None`: see `compiles`.
    """
    cpus = threads or ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
    wanted = {
        OWNED: "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of a process whose threads hold torch's locks may hang
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout is for results
        # For vLLM's authors: the count of what its engines left in shared memory, which the counting tracker removes,
        # and where torch binds memory.
        "PYTHONWARNINGS": "ignore::FutureWarning:vllm.triton_utils.dispatcher,ignore:resource_tracker:UserWarning",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": cpus,  # the default binds one thread on two cores
        # Engine and learner share the cores. A thread that spins at a barrier keeps the other's from running: sleeping
        # instead made both together 3.7 and 1.8 times as fast on two cores, and cost nothing alone.
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    if not compiles(compiled, cpu=built_for_cpu()):
        # Without this the first request waits 15 s for a compiler, on account of one small function about logprobs.
        wanted["TORCHDYNAMO_DISABLE"] = "1"
    for name, value in wanted.items():
        if name not in os.environ or os.environ[name] == _made.get(name):
            os.environ[name] = _made[name] = value
