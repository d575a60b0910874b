from envsdk.sandboxes.base import Limits
from envsdk.sandboxes.limits import Bounds, bounds


def test_nothing_is_ever_unlimited() -> None:
    assert all(value > 0 for value in (bounds(Limits()).cpus, bounds(Limits()).memory_mib, bounds(Limits()).disk_mib))
    assert bounds(Limits()) == Bounds()


def test_what_the_spec_says_binds_and_the_rest_is_the_default() -> None:
    assert bounds(Limits(pids=3, cpus=0.5)) == Bounds(pids=3, cpus=0.5)
