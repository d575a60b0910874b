"""How an engine is started: settings, as data, and what vLLM is told of them on a CPU and on a GPU. Loads no vLLM."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from envsdk.frozen import Frozen
from trainer.engines.environment import compiles

_CPU_BLOCK = 32  # tokens; the default of 128 lets short prompts share no prefix


class EngineOptions(Frozen):
    """How to start an engine.

    Attributes:
        replicas: engines behind one router; each has all that follows for itself.
        kv_cache_gib: memory for the KV cache on a CPU.
        gpu_share: share of a GPU's memory for weights and KV cache; `None` for what `trainer.placement` leaves it.
        tensor_parallel: GPUs that hold one replica together.
        threads: CPU ids an engine computes on, comma separated; empty for its part of what this process may use.
        seed: of what no request's own seed decides; `None` for the run's, or 0 without a run.
        compile: let vLLM compile the model; `None`: on a GPU. On a CPU that costs 100 s of start for 1.2x.
    """

    max_model_len: int = Field(default=2048, ge=16)
    max_concurrent: int = Field(default=64, ge=1)
    replicas: int = Field(default=1, ge=1)
    kv_cache_gib: int = Field(default=2, ge=1)
    gpu_share: float | None = Field(default=None, gt=0, lt=1)
    tensor_parallel: int = Field(default=1, ge=1)
    threads: str = Field(default="", pattern=r"^([0-9]+([,-][0-9]+)*)?$")
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    compile: bool | None = None
    seed: int | None = Field(default=None, ge=0, lt=1 << 32)


def arguments(options: EngineOptions, *, cpu: bool, gpus: tuple[int, ...] = ()) -> dict[str, Any]:
    """The engine arguments of vLLM, but for the model and the transfer of weights.

    Args:
        options: of the engine.
        cpu: it computes on a CPU.
        gpus: that it computes on, numbered among the visible ones; empty for vLLM's own choice.
    """
    told: dict[str, Any] = {
        "dtype": options.dtype,
        "max_model_len": options.max_model_len,
        "max_num_seqs": options.max_concurrent,
        "enforce_eager": not compiles(options.compile, cpu=cpu),
        "enable_prefix_caching": True,
        "use_tqdm_on_load": False,
        "logprobs_mode": "processed_logprobs",  # after temperature: what was sampled from
        "seed": options.seed or 0,
        "generation_config": "vllm",  # no sampling defaults from the model's folder
        "tensor_parallel_size": options.tensor_parallel,
    }
    if cpu:
        return {**told, "block_size": _CPU_BLOCK}
    if options.gpu_share is not None:
        told["gpu_memory_utilization"] = options.gpu_share
    if gpus:
        told["device_ids"] = list(gpus)
    return told
