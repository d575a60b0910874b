"""What vLLM is told: the same on every device but for what a CPU and a GPU need otherwise."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from trainer.engines.options import EngineOptions, arguments


def test_a_cpu_is_not_told_of_gpus() -> None:
    told = arguments(EngineOptions(gpu_share=0.5), cpu=True, gpus=(1,))
    assert told["block_size"] == 32
    assert not {"gpu_memory_utilization", "device_ids"} & set(told)


def test_a_gpu_keeps_vllms_own_block_and_gets_its_share_and_its_devices() -> None:
    told = arguments(EngineOptions(gpu_share=0.45, tensor_parallel=2), cpu=False, gpus=(1, 2))
    assert "block_size" not in told
    assert (told["gpu_memory_utilization"], told["device_ids"], told["tensor_parallel_size"]) == (0.45, [1, 2], 2)


def test_what_nobody_decided_is_left_to_vllm() -> None:
    assert not {"gpu_memory_utilization", "device_ids"} & set(arguments(EngineOptions(), cpu=False))


@pytest.mark.parametrize(
    ("compiled", "cpu", "eager"),
    [(None, True, True), (None, False, False), (True, True, False), (False, False, True)],
)
def test_a_model_runs_eagerly_on_a_cpu_and_compiled_on_a_gpu_unless_told(
    compiled: bool | None, cpu: bool, eager: bool
) -> None:
    assert arguments(EngineOptions(compile=compiled), cpu=cpu)["enforce_eager"] is eager


def test_every_argument_is_one_of_vllms() -> None:
    # Read, not imported: that takes ten seconds.
    source = Path(importlib.util.find_spec("vllm").origin).parent / "engine" / "arg_utils.py"
    (declared,) = [
        node
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs"
    ]
    fields = {node.target.id for node in declared.body if isinstance(node, ast.AnnAssign)}
    options = EngineOptions(gpu_share=0.45)
    assert set(arguments(options, cpu=True) | arguments(options, cpu=False, gpus=(0,))) <= fields
