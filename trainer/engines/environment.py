"""What vLLM and the threads of a shared CPU want to find in the environment; what the user has set stays.

Called before torch is imported where possible: the OpenMP runtime reads its settings once, when it is loaded.
"""

from __future__ import annotations

import os

from trainer.engines.orphans import OWNED


def prepare_environment(*, kv_cache_gib: int, threads: str, compiled: bool) -> None:
    """Set the variables that this process and the engines it spawns will read.

    Args:
        kv_cache_gib: memory of the KV cache on a CPU.
        threads: CPU ids that an engine computes on, comma separated; empty for all that this process may use.
        compiled: the engine's model is compiled.
    """
    cpus = threads or ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
    wanted = {
        OWNED: "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
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
    if not compiled:
        # Without this the first request waits 15 s for a compiler, on account of one small function about logprobs.
        wanted["TORCHDYNAMO_DISABLE"] = "1"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
