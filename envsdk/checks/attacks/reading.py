"""Can a program that is handed in read ``/tests`` while it is judged?"""

from __future__ import annotations

from envsdk.checks.attacks.ground import Ground
from envsdk.checks.program_files import Language, programs
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.tool_programs import TOOLS, running

_MARK = "/tmp/.envsdk-could-read"  # noqa: S108 - inside the box
_PROBE = f"cat /tests/test.sh > /dev/null 2>&1 && echo yes > {_MARK}\n"
_PROBES: dict[Language, str] = {
    "python": f"""try:
    open("/tests/test.sh").read()
    open("{_MARK}", "w").write("yes")
except OSError:
    pass
""",
    "shell": _PROBE,
    "javascript": f"""const files = require("fs")
try {{
    files.readFileSync("/tests/test.sh")
    files.writeFileSync("{_MARK}", "yes")
}} catch {{}}
""",
    **{tool: running(tool, _PROBE) for tool in TOOLS},
}


async def readable_tests(stage: Stage, ground: Ground) -> bool:
    """Hand in programs that try. Raises `SandboxError`."""
    files = {path: _PROBES[language].encode() for path, language in programs(ground.oracle.outputs).items()}
    if not files:
        return False
    scene = Scene(files={**ground.base, **files}, script=f"chmod 755 {' '.join(files)}")
    _, told = await stage.watch(scene, after=f"cat {_MARK} 2>/dev/null; true")
    return b"yes" in told
