"""What engines find in the environment: our settings, below the user's own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from trainer.engines.environment import prepare_environment


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})


def test_settings_the_user_made_stay() -> None:
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "7"
    prepare_environment(kv_cache_gib=2, threads="0,1", compiled=False)
    assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "7"
    assert os.environ["VLLM_CPU_OMP_THREADS_BIND"] == "0,1"


def test_nothing_is_asked_of_a_network_and_threads_sleep_at_barriers() -> None:
    prepare_environment(kv_cache_gib=2, threads="", compiled=False)
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_engines_leave_stdout_to_results() -> None:
    prepare_environment(kv_cache_gib=2, threads="", compiled=False)
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"


def test_without_a_choice_an_engine_gets_every_cpu_of_this_process() -> None:
    prepare_environment(kv_cache_gib=2, threads="", compiled=False)
    assert os.environ["VLLM_CPU_OMP_THREADS_BIND"] == ",".join(map(str, sorted(os.sched_getaffinity(0))))


@pytest.mark.parametrize("compiled", [False, True])
def test_the_compiler_is_kept_out_unless_it_is_wanted(compiled: bool) -> None:
    prepare_environment(kv_cache_gib=2, threads="", compiled=compiled)
    assert ("TORCHDYNAMO_DISABLE" in os.environ) is not compiled


def test_the_train_command_sets_them_before_torch_is_loaded() -> None:
    probe = "import sys, trainer.cli.train, trainer.engines.environment; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
