"""The list of checks, and how one is run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from envsdk.sandboxes.base import Limits, Sandbox, SandboxProvider, SandboxSpec
from envsdk.sandboxes.conformance import commands, ends, files, lives, resources
from envsdk.sandboxes.conformance.bench import Bench, SkipCheckError

Check = Callable[[Bench], Awaitable[None]]


def _named(*modules: object) -> dict[str, Check]:
    found: dict[str, Check] = {}
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("check_"):
                found[name.removeprefix("check_")] = value
    return found


CHECKS: Mapping[str, Check] = MappingProxyType(_named(commands, files, ends, resources, lives))


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check went: ``outcome`` is pass, fail, error or skip; ``why`` what was seen."""

    check: str
    outcome: str
    why: str
    seconds: float


async def run(provider: SandboxProvider, image: str, names: Iterable[str] | None = None) -> list[Finding]:
    """Run the named checks (by default all) in turn, each in sandboxes of its own that are closed after it."""
    findings = []
    for name in CHECKS if names is None else names:
        began = time.monotonic()
        bench = Bench(provider, image)
        try:
            await CHECKS[name](bench)
            outcome, why = "pass", ""
        except SkipCheckError as error:
            outcome, why = "skip", str(error)
        except AssertionError as error:
            outcome, why = "fail", str(error)
        except Exception as error:  # noqa: BLE001 - a third party's back end may raise anything: that is a finding too
            outcome, why = "error", f"{type(error).__name__}: {error}"
        finally:
            await bench.close()
        findings.append(Finding(name, outcome, why, time.monotonic() - began))
    return findings


__all__ = ["CHECKS", "Bench", "Check", "Finding", "Limits", "Sandbox", "SandboxSpec", "SkipCheckError", "run"]
