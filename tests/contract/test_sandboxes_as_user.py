"""bubblewrap as an ordinary user: the whole suite, but for what one single user cannot have."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.home import BASE_IMAGE, rootfs_dir
from envsdk.sandboxes.conformance import CHECKS

NOT_CLAIMED = {"user", "no_way_back_to_root", "write_as_root"}  # there is one user, and it is root inside


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.timeout(280)
def test_all_but_users_holds_without_root(tmp_path: Path) -> None:
    tree = rootfs_dir(BASE_IMAGE)
    (tmp_path / "rootfs").mkdir()
    (tmp_path / "rootfs" / tree.name).symlink_to(tree.resolve())
    become = ["unshare", "--user", "--map-user", "1000", "--map-group", "1000"] if os.geteuid() == 0 else []
    script = str(Path(__file__).with_name("ordinary_user.py"))
    ended = subprocess.run(
        [*become, sys.executable, script, *(name for name in CHECKS if name not in NOT_CLAIMED)],
        env={**os.environ, "ENVSDK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=270,
    )
    told = json.loads(ended.stdout)
    assert told["uid"] != 0
    assert told["served"] == ["a", "b"]
    assert [finding for finding in told["findings"] if finding["outcome"] != "pass"] == []
    assert list((tmp_path / "images" / "bubblewrap" / "boxes").iterdir()) == []
