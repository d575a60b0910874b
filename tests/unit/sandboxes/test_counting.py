from envsdk.sandboxes.base import Counters
from envsdk.sandboxes.counting import FILES, counters_from, inside_paths

V1 = {
    ("memory", "memory.oom_control"): b"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    ("memory", "memory.max_usage_in_bytes"): b"67108864\n",
    ("memory", "memory.limit_in_bytes"): b"134217728\n",
    ("pids", "pids.events"): b"max 5\n",
    ("pids", "pids.max"): b"40\n",
    ("pids", "pids.peak"): b"40\n",
}
V2 = {
    ("memory", "memory.events"): b"low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n",
    ("memory", "memory.peak"): b"67108864\n",
    ("memory", "memory.max"): b"134217728\n",
    ("pids", "pids.events"): b"max 5\n",
    ("pids", "pids.max"): b"40\n",
    ("pids", "pids.peak"): b"40\n",
}
EXPECTED = Counters(
    oom_kills=2, memory_peak_mib=64.0, memory_limit_mib=128.0, pids_limit_hits=5, pids_peak=40, pids_limit=40
)


def test_both_versions_of_the_files_give_the_same_counters() -> None:
    assert counters_from(lambda *where: V1[where], 1) == EXPECTED
    assert counters_from(lambda *where: V2[where], 2) == EXPECTED


def test_a_missing_file_leaves_its_counter_unknown_never_zero() -> None:
    assert counters_from(lambda *_: None, 2) == Counters()


def test_no_limit_is_unknown_and_no_number() -> None:
    assert counters_from(lambda *_: b"max\n", 2) == Counters()


def test_other_lines_that_end_alike_are_not_taken() -> None:
    text = b"oom_group_kill 7\nunder_oom 1\n"
    assert counters_from(lambda *_: text, 2).oom_kills is None


def test_containers_see_their_own_group_at_fixed_places() -> None:
    assert len(inside_paths(1)) == len(inside_paths(2)) == len(FILES[1])
    assert inside_paths(1)[0] == "/sys/fs/cgroup/memory/memory.oom_control"
    assert inside_paths(2)[0] == "/sys/fs/cgroup/memory.events"
