"""Tensors on the disk: a full one is the system's refusal, and a file that was cut off is known before it is read."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from trainer.tensor_file import damage, save_tensors


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    save_tensors({"a": torch.ones(3, 5), "b": torch.zeros(0)}, path, metadata={"format": "pt"})
    return path


def test_a_file_as_it_was_written_is_whole(whole: Path) -> None:
    assert damage(whole) == ""


@pytest.mark.parametrize("kept", [0, 5, 8, 20, -1])
def test_a_file_that_was_cut_off_is_told(whole: Path, kept: int) -> None:
    os.truncate(whole, kept if kept >= 0 else whole.stat().st_size + kept)
    assert damage(whole)


@pytest.mark.parametrize(
    "data", [b"x" * 40, (2).to_bytes(8, "little") + b"[]", (1 << 60).to_bytes(8, "little") + b"{}"]
)
def test_what_is_no_tensor_file_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "w").write_bytes(data)
    assert damage(tmp_path / "w")


def test_a_file_that_grew_is_told(whole: Path) -> None:
    with whole.open("ab") as file:
        file.write(b"x")
    assert "where its header says" in damage(whole)


def test_what_the_system_refuses_is_an_error_of_the_systems(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        save_tensors({"a": torch.ones(1)}, tmp_path / "missing" / "w")
    assert caught.value.errno == errno.ENOENT


PROGRAM = """
import sys, torch
from pathlib import Path
from envsdk.errors import StoreError
from trainer import checkpoint
from trainer.tensor_file import save_tensors
root = Path(sys.argv[1])
checkpoint.save(root, 1, lambda folder: (folder / "small").write_text("x") and None)
try:
    checkpoint.save(root, 2, lambda folder: save_tensors({"a": torch.ones(1 << 20)}, folder / "w"))
except StoreError as error:
    print(error.code, [path.name for path in root.iterdir()], checkpoint.newest(root).name)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_costs_the_checkpoint_that_did_not_fit_and_no_other(tmp_path: Path) -> None:
    become = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    small = f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$0" "$@"'
    program = ["sh", "-c", small, sys.executable, "-c", PROGRAM, str(tmp_path)]
    if subprocess.run([*become, "true"], check=False).returncode:
        pytest.skip("no mounts of its own: neither root nor user namespaces")
    done = subprocess.run(
        [*become, *program], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.stdout.strip() == "checkpoint_failed ['step-000001'] step-000001"
