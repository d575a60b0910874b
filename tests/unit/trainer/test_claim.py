"""A run's directory has one writer: refused while one lives, free once it is gone, however it went."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.errors import UsageError
from trainer.claim import claimed

HOLD = """
import sys, time
from pathlib import Path
from trainer.claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_another_process_is_refused_until_the_holder_is_gone_even_by_a_kill(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UsageError) as caught, claimed(tmp_path):
            pass
        assert caught.value.code == "run_in_use"
        holder.send_signal(signal.SIGKILL)
    with claimed(tmp_path):
        pass


def test_it_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), claimed(tmp_path / "new"):
        raise RuntimeError
    with claimed(tmp_path / "new"):
        pass


def test_a_file_is_no_directory_to_claim(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught, claimed(tmp_path / "file"):
        pass
    assert caught.value.code == "bad_run_dir"
