"""``network``: a verifier that declares no network reaches for none.

Seen from the kernel's counters of the sandbox's own network: packets that found no way out, questions to a name server
that is not there, and packets that left. What a program that was handed in does is not the verifier's doing: with
programs in the submission the verifier is watched again with others in their places.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from envsdk.checks.check import MACHINERY, Check, Finding, does_not_apply, fails, passes, shown, undecided
from envsdk.checks.mutation.constant_programs import constant_program
from envsdk.checks.program_files import programs
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.verifying.verdict import Verdict

_BEFORE = "/tmp/.envsdk-network"  # noqa: S108 - inside the box
_READ = "cat /proc/net/snmp /proc/net/dev"
_MARK = "--- after ---"
_OWN_NAME = 'grep -qw -- "$(cat /proc/sys/kernel/hostname)" /etc/hosts && echo known'
"""A box that does not know its own name asks a name server for it: then such questions say nothing."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Packets counted since the sandbox's start."""

    no_route: int = 0
    no_listener: int = 0
    left: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What was added since an earlier reading."""
        return Traffic(self.no_route - before.no_route, self.no_listener - before.no_listener, self.left - before.left)

    @property
    def any(self) -> bool:
        """Something was sent beyond the box, or was meant to be."""
        return self.no_route > 0 or self.no_listener > 0 or self.left > 0


def read_traffic(text: str) -> Traffic:
    """From ``/proc/net/snmp`` and ``/proc/net/dev``, one after the other; what is missing counts as 0."""
    lines = [line.split() for line in text.splitlines()]
    counters: dict[str, int] = {}
    for head, row in itertools.pairwise(lines):
        if head and row and head[0] == row[0] and head[0] in {"Ip:", "Udp:"} and not head[1].lstrip("-").isdigit():
            counters |= {f"{head[0]}{name}": int(value) for name, value in zip(head[1:], row[1:], strict=False)}
    left = sum(int(line[10]) for line in lines if len(line) == 17 and line[0].endswith(":") and line[0] != "lo:")
    return Traffic(counters.get("Ip:OutNoRoutes", 0), counters.get("Udp:NoPorts", 0), left)


async def _examine(stage: Stage) -> Finding:
    spec = stage.task.spec
    if spec.verifier.kind != "script":
        return does_not_apply("a Python verifier runs where there is no network")
    if spec.verifier.network in {"public", "allowlist"} or spec.services:
        return does_not_apply("the verifier declares that it uses a network")
    scene = await oracle_scene(stage)
    verdict, traffic = await _watched(stage, scene)
    if verdict.code in MACHINERY:
        return undecided(f"could not verify: {verdict.code}", **shown(verdict))
    run = await stage.oracle()
    assert run is not None
    found = programs(run.outputs)
    if traffic.any and found:
        others = {path: constant_program(language, run.outputs[path], "x") for path, language in found.items()}
        verdict, traffic = await _watched(stage, Scene(files=others, after_oracle=True))
    if not traffic.any:
        return passes("nothing was sent beyond the box")
    return fails(
        "the verifier reaches for the network, which it does not declare",
        no_route=traffic.no_route,
        names_asked_for=traffic.no_listener,
        packets_left=traffic.left,
        **shown(verdict),
    )


async def _watched(stage: Stage, scene: Scene) -> tuple[Verdict, Traffic]:
    after = f"cat {_BEFORE}; echo '{_MARK}'; {_READ}; rm -f {_BEFORE}; {_OWN_NAME}; true"
    verdict, told = await stage.watch(scene, before=f"{_READ} > {_BEFORE}", after=after)
    earlier, _, later = told.decode("utf-8", "replace").partition(_MARK)
    traffic = read_traffic(later).since(read_traffic(earlier))
    return verdict, traffic if later.rstrip().endswith("known") else replace(traffic, no_listener=0)


CHECK = Check(
    id="network",
    question="Does a verifier that declares no network reach for none?",
    fix="bake what the verifier needs into the image or bring it along under tests/; else declare its network_mode",
    examine=_examine,
    needs="oracle",
)
