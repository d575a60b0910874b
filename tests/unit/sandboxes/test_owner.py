import os
import subprocess
import time

import pytest

from envsdk.sandboxes.owner import (
    LEASE_LABEL,
    OWNER_LABEL,
    Owner,
    labels,
    may_reap,
    start_ticks,
    this_owner,
    this_place,
)

PAST, FUTURE = "1.0", str(time.time() + 3600)


def test_an_owner_is_read_as_it_is_written() -> None:
    owner = this_owner()
    assert Owner.parse(str(owner)) == owner


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "boot.1", "boot.1.x", "boot.-1.2"])
def test_other_texts_are_no_owner(text: str) -> None:
    assert Owner.parse(text) is None


def test_what_this_process_made_is_kept_whatever_the_lease() -> None:
    assert not may_reap(str(this_owner()), PAST)


def test_what_a_dead_process_made_goes_before_its_lease() -> None:
    child = subprocess.Popen(["sleep", "100"])
    ticks = start_ticks(child.pid)
    assert ticks is not None
    owner = Owner(this_place(), child.pid, ticks)
    assert not may_reap(str(owner), FUTURE)
    child.kill()
    child.wait()
    assert may_reap(str(owner), FUTURE)


def test_a_zombie_owns_nothing() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_ticks(child.pid) is None
    child.wait()


def test_a_reused_process_id_is_not_the_owner() -> None:
    owner = this_owner()
    assert may_reap(str(Owner(owner.place, owner.pid, owner.started + 1)), FUTURE)


def test_another_machines_things_go_only_when_their_lease_is_over() -> None:
    foreign = str(Owner("00000000-0000-0000-0000-000000000000", 1, 1))
    assert not may_reap(foreign, FUTURE)
    assert may_reap(foreign, PAST)


def test_the_same_process_id_in_another_namespace_is_another_machines() -> None:
    owner = this_owner()
    inside = Owner(f"{owner.place}9", owner.pid, owner.started + 1)
    assert not may_reap(str(inside), FUTURE)
    assert may_reap(str(inside), PAST)


def test_labels_name_this_process_and_a_lease_to_come() -> None:
    made = labels()
    assert made[OWNER_LABEL] == str(this_owner())
    assert float(made[LEASE_LABEL]) > time.time()


def test_labels_that_cannot_be_read_protect_nothing() -> None:
    assert may_reap("garbage", "garbage")
