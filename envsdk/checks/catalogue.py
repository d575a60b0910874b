"""Every check, in the order in which they are shown. To add one: write its file, name its `CHECK` here."""

from __future__ import annotations

from collections.abc import Iterable

from envsdk.checks import (
    clock,
    echo,
    empty,
    hash_seed,
    leak,
    load,
    malformed,
    mutants,
    network,
    noop,
    oracle,
    planted_reward,
    repeat,
    skip_ratio,
    static,
    tamper,
)
from envsdk.checks.check import Check
from envsdk.errors import UsageError
from envsdk.suggest import did_you_mean

_MODULES = (
    oracle,
    noop,
    empty,
    echo,
    malformed,
    planted_reward,
    mutants,
    skip_ratio,
    repeat,
    clock,
    hash_seed,
    load,
    network,
    static,
    leak,
    tamper,
)
CHECKS: tuple[Check, ...] = tuple(module.CHECK for module in _MODULES)


def choose(ids: Iterable[str] | None) -> tuple[Check, ...]:
    """The checks of these ids, in the catalogue's order; all of them for `None`.

    Raises:
        UsageError: there is no such check (code ``unknown_check``).
    """
    if ids is None:
        return CHECKS
    wanted = set(ids)
    known = {check.id for check in CHECKS}
    for name in sorted(wanted - known):
        hint = did_you_mean(name, known) or f"there are {', '.join(sorted(known))}"
        raise UsageError(f"no check {name!r}", code="unknown_check", hint=hint)
    return tuple(check for check in CHECKS if check.id in wanted)
