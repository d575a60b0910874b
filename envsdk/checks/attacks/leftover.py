"""Processes that the agent leaves running: one that answers in the program's place, one that writes the reward.

They are started right before the verifier's script: a runner that ends the agent's processes hides the fault, and does
not mend it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envsdk.checks.attacks.ground import Attack, Ground
from envsdk.checks.program_files import programs
from envsdk.checks.scene import Scene
from envsdk.sandboxes.base import Sandbox

_PORT = re.compile(
    r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0)[\"']?\s*[,:]\s*(?:port\s*)?(?P<port>\d{2,5})|\bport\s+(?P<named>\d{2,5})"
)
_RUN = {"python": "python3", "shell": "sh", "javascript": "node", "awk": "awk -f", "sed": "sed -f", "perl": "perl"}
_SOCKET = re.compile(r"(?<![\w.])/[\w./-]+\.sock(?:et)?\b")
_WRITER = (
    "while :; do echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json; "
    "sleep 0.01; done"
)
_IDLE = b"\n"


def attacks(ground: Ground) -> Iterator[Attack]:
    """A writer of rewards always; the oracle's own server where the verifier connects to a port."""

    async def write(box: Sandbox) -> None:
        await _start(box, ground.user, f"sh -c {shlex.quote(_WRITER)}")

    yield Attack(
        "a left-over process that keeps writing the reward", Scene(files=dict(ground.base), before_start=write)
    )
    said = ground.text + ground.instruction
    ports = sorted({match["port"] or match["named"] for match in _PORT.finditer(said)})
    sockets = sorted(set(_SOCKET.findall(said)))
    for path, language in programs(ground.oracle.outputs).items():
        if ports or sockets:
            yield _server(ground, path, _RUN[language], ports, sockets)


def _server(ground: Ground, path: str, interpreter: str, ports: list[str], sockets: list[str]) -> Attack:
    program = ground.oracle.outputs[path]
    called = re.search(re.escape(path) + r"(?P<words>(?:[ \t]+[\w.:=/-]+)*)", ground.text)
    words = called["words"] if called else ""
    copy = f"/tmp/.left-over-{path.rsplit('/', 1)[-1]}"  # noqa: S108 - inside the box
    waiting = "|".join([*(f":{int(port):04X} .* 0A " for port in ports), *map(re.escape, sockets)])

    async def serve(box: Sandbox) -> None:
        await box.write(copy, program, mode=0o755, user=ground.user)
        await _start(box, ground.user, f"{interpreter} {copy}{words}")
        listens = f"cat /proc/net/tcp /proc/net/unix 2>/dev/null | grep -qE '{waiting}'"
        await box.exec(f"for i in $(seq 30); do {listens} && break; sleep 0.1; done", user="root", cwd="/")

    scene = Scene(files={**ground.base, path: _IDLE}, before_start=serve)
    return Attack(f"a left-over process that serves in the place of an empty {path}", scene)


async def _start(box: Sandbox, user: str, command: str) -> None:
    await box.exec(f"nohup setsid {command} > /dev/null 2>&1 < /dev/null &", user=user, cwd="/")
