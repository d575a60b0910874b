"""What engines find in the environment: our settings, below the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from trainer.engines import environment
from trainer.engines.environment import built_for_cpu, prepare_environment, threads_of


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


@pytest.mark.parametrize(
    ("compiled", "for_cpu", "kept_out"),
    [(False, True, True), (True, True, False), (None, True, True), (None, False, False), (False, False, True)],
)
def test_the_compiler_is_kept_out_where_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, compiled: bool | None, for_cpu: bool, kept_out: bool
) -> None:
    monkeypatch.setattr(environment, "built_for_cpu", lambda: for_cpu)
    prepare_environment(kv_cache_gib=2, threads="", compiled=compiled)
    assert ("TORCHDYNAMO_DISABLE" in os.environ) is kept_out


def test_workers_are_spawned_never_forked() -> None:
    prepare_environment(kv_cache_gib=2, threads="", compiled=None)
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"


def test_each_replica_gets_its_own_threads_unless_the_user_set_them() -> None:
    for threads in ("0", "1"):
        prepare_environment(kv_cache_gib=2, threads=threads, compiled=None)
        assert os.environ["VLLM_CPU_OMP_THREADS_BIND"] == threads
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "5"
    prepare_environment(kv_cache_gib=2, threads="0", compiled=None)
    assert os.environ["VLLM_CPU_OMP_THREADS_BIND"] == "5"


@pytest.mark.parametrize(
    ("cpus", "of", "dealt"),
    [
        ({0, 1}, 1, ["0,1"]),
        ({0, 1}, 2, ["0", "1"]),
        ({4, 5, 6, 7}, 2, ["4,5", "6,7"]),
        ({0, 1, 2}, 2, ["0", "1"]),
        ({3}, 2, ["3", "3"]),
    ],
)
def test_replicas_divide_the_cpus_and_share_too_few(
    monkeypatch: pytest.MonkeyPatch, cpus: set[int], of: int, dealt: list[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: cpus)
    assert [threads_of(number, of) for number in range(of)] == dealt


@pytest.mark.parametrize(
    ("distributions", "for_cpu"), [({"vllm": "0.32.0"}, False), ({"vllm": "0.32.0+cpu"}, True), ({}, True)]
)
def test_the_build_is_told_by_the_distribution(
    monkeypatch: pytest.MonkeyPatch, distributions: dict[str, str], for_cpu: bool
) -> None:
    def version(name: str) -> str:
        if name not in distributions:
            raise PackageNotFoundError(name)
        return distributions[name]

    monkeypatch.setattr(environment, "version", version)
    assert built_for_cpu() is for_cpu


def test_the_train_command_sets_them_before_torch_is_loaded() -> None:
    probe = "import sys, trainer.cli.train, trainer.engines.environment; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
