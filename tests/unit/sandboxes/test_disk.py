from pathlib import Path

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes import disk
from envsdk.sandboxes.disk import DiskWatch, folder_mib


class Box:
    def __init__(self, written: float | None, *, limit: float = 10.0, is_broken: bool = False) -> None:
        self.disk_limit_mib = limit
        self.kills = 0
        self._written = written
        self._is_broken = is_broken

    async def written_mib(self) -> float | None:
        return self._written

    async def kill_agent_processes(self) -> int:
        self.kills += 1
        if self._is_broken:
            raise SandboxError("gone")
        return 1


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    level = [100.0]
    monkeypatch.setattr(disk, "used_mib", lambda _path: level[0])
    return level


async def test_only_a_box_over_its_limit_loses_its_processes(fill: list[float]) -> None:
    boxes = [Box(9.0), Box(11.0), Box(None)]
    watch = DiskWatch(lambda: boxes, Path("/"))
    await watch.look()
    assert [box.kills for box in boxes] == [0, 1, 0]


async def test_nobody_is_measured_while_the_disk_does_not_fill(fill: list[float]) -> None:
    box = Box(11.0)
    watch = DiskWatch(lambda: [box], Path("/"))
    await watch.look()
    fill[0] += disk.STEP_MIB / 2
    await watch.look()
    assert box.kills == 1
    fill[0] += disk.STEP_MIB
    await watch.look()
    assert box.kills == 2


async def test_what_was_freed_meanwhile_does_not_hide_new_growth(fill: list[float]) -> None:
    box = Box(11.0)
    watch = DiskWatch(lambda: [box], Path("/"))
    await watch.look()
    fill[0] -= 50
    await watch.look()
    fill[0] += disk.STEP_MIB
    await watch.look()
    assert box.kills == 2


async def test_a_box_that_is_gone_does_not_stop_the_watch(fill: list[float]) -> None:
    boxes = [Box(11.0, is_broken=True), Box(11.0)]
    await DiskWatch(lambda: boxes, Path("/")).look()
    assert boxes[1].kills == 1


def test_a_folders_size_is_its_blocks(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(bytes(3 << 20))
    (tmp_path / "link").symlink_to("/usr")
    assert 3.0 <= folder_mib(tmp_path) < 3.2


def test_a_sparse_file_counts_as_what_it_holds(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 << 20)
    assert folder_mib(tmp_path) < 1


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert folder_mib(tmp_path / "gone") == 0


def test_a_tree_with_closed_folders_is_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    tree = tmp_path / "tree"
    (tree / "closed" / "deep").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "closed").chmod(0)
    disk.remove_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").is_dir()
