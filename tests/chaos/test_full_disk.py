"""The machine's disk runs full under a sandbox that is within its own limit: the machine is blamed, not the model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.home import BASE_IMAGE, rootfs_dir

SCRIPT = Path(__file__).with_name("full_disk_owner.py")
SMALL = 'mount -t tmpfs -o size=24m none "$ENVSDK_HOME" && mkdir "$ENVSDK_HOME/rootfs" && ln -s "$TREE" "$ENVSDK_HOME/rootfs/"'


@pytest.mark.bubblewrap
@pytest.mark.timeout(120)
def test_a_disk_that_is_full_outside_is_the_machinerys(tmp_path: Path) -> None:
    home, task = tmp_path / "home", tmp_path / "task"
    home.mkdir()
    task.mkdir()
    # Mounts of its own, so that the small disk goes with the process; an ordinary user is root of a namespace for it.
    become = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    ended = subprocess.run(
        [*become, "sh", "-c", f'{SMALL} && exec "$0" "$@"', sys.executable, str(SCRIPT), str(task)],
        env={**os.environ, "ENVSDK_HOME": str(home), "TREE": str(rootfs_dir(BASE_IMAGE).resolve()), "PYTHONPATH": "."},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    told = json.loads(ended.stdout)
    assert "No space left on device" in told["turns"][0]
    assert (told["outcome"]["outcome_class"], told["outcome"]["cause"]) == ("infra_failure", "host_disk"), told
    assert told["outcome"]["reward"] is None
    assert told["outcome"]["redispatch"]
