"""Groups in a folder that stands for the kernel's file system."""

from pathlib import Path

import pytest

from envsdk.sandboxes import cgroups
from envsdk.sandboxes.limits import Bounds
from envsdk.sandboxes.reaper import is_abandoned

LIMIT = Bounds(cpus=0.5, memory_mib=64, disk_mib=1, pids=40)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    number = int(request.param)
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "version", lambda: number)
    monkeypatch.setattr(cgroups, "available", lambda: True)
    for base in cgroups._bases():
        base.mkdir(parents=True)
    return number


def content(root: Path, name: str) -> str:
    return next(path for path in root.rglob(name)).read_text()


def test_limits_are_written_where_the_version_has_them(version: int, tmp_path: Path) -> None:
    assert cgroups.create("b1", LIMIT) is not None
    names = {1: ("memory.limit_in_bytes", "cpu.cfs_quota_us", "50000"), 2: ("memory.max", "cpu.max", "50000 100000")}
    memory, cpu, quota = names[version]
    assert content(tmp_path, memory) == str(64 << 20)
    assert content(tmp_path, cpu) == quota
    assert content(tmp_path, "pids.max") == "40"


def test_a_process_joins_every_controllers_group_once_and_alone(version: int) -> None:
    group = cgroups.create("b1", LIMIT)
    assert group is not None
    assert [path.name for path in group.entries()] == {1: ["tasks"] * 3, 2: ["cgroup.procs"]}[version]
    assert len({path.parent for path in group.entries()}) == len(group.entries())


def test_members_are_the_processes_of_all_controllers(version: int) -> None:
    group = cgroups.create("b1", LIMIT)
    assert group is not None
    group.procs()[0].write_text("12\n7\n")
    assert group.members() == [7, 12]


def test_a_group_in_use_is_not_removed_and_an_absent_one_counts_as_removed(version: int, tmp_path: Path) -> None:
    group = cgroups.create("b1", LIMIT)
    assert group is not None
    assert not group.remove()  # plain folders with files in them refuse, as groups with processes do
    for folder in {folder for _, folder in group.folders}:
        for file in folder.iterdir():
            file.unlink()
    assert group.remove()
    assert group.remove()


def test_left_overs_are_found_by_name(version: int) -> None:
    cgroups.create("b1", LIMIT)
    cgroups.create("b2", LIMIT)
    found = cgroups.leftovers()
    assert {group.folders[0][1].name for group in found} == {"b1", "b2"}
    assert all(len(group.procs()) == {1: 3, 2: 1}[version] for group in found)


def test_without_rights_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "available", lambda: False)
    assert cgroups.create("b1", LIMIT) is None


def test_all_sandboxes_together_weigh_more_than_one_process(version: int, tmp_path: Path) -> None:
    cgroups.share_out_cpu()
    name, usual = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}[version]
    assert int(content(tmp_path, name)) == usual * cgroups.PROCESSES_WORTH


@pytest.mark.parametrize(
    ("name", "runs", "age_s", "verdict"),
    [
        ("b0123456789ab", "", 61.0, True),
        ("b0123456789ab", "", 5.0, False),
        ("b0123456789ab", "17\n", 999.0, False),
        ("verifier-1", "", 999.0, False),
        ("b79efe177865b87a91fd2f33", "", 999.0, False),
    ],
)
def test_only_an_empty_group_of_a_sandbox_is_abandoned_and_not_at_once(
    tmp_path: Path, name: str, runs: str, age_s: float, verdict: bool
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "cgroup.procs").write_text(runs)
    group = cgroups.Group(1, (("memory", folder), ("pids", folder)))
    assert is_abandoned(group, now=folder.stat().st_mtime + age_s) is verdict
