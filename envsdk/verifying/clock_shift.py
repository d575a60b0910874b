"""Move a program's wall clock inside a sandbox: where the preloaded library is, and the variables that use it.

The library (``shift/shift.c``) is shipped for x86_64 and built once with the machine's compiler elsewhere;
``python -m envsdk.verifying.clock_shift`` rebuilds the shipped file. Not promised: programs linked without a C library.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import platformdirs

from envsdk.digest import sha256_hex
from envsdk.errors import PrerequisiteError, UsageError
from envsdk.files.replace import replacing

SOURCE = Path(__file__).parent / "shift" / "shift.c"
FLAGS = (
    "-Os",
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-builtin",
    "-Wall",
    "-s",
)
LINK = ("-fno-asynchronous-unwind-tables", "-Wl,--build-id=none", "-Wl,-z,noseparate-code")
_IN_BOX = "/opt/envsdk/clock-shift.so"
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SHIFT = re.compile(r"([+-])([0-9]{1,9})([smhd])")


def library() -> tuple[Path, str]:
    """The library for this machine's processor, and its path inside a box.

    Raises:
        PrerequisiteError: ``no_clock_shift``: none is shipped for it and none can be built.
    """
    shipped = SOURCE.with_name(f"shift-{platform.machine()}")
    if shipped.is_file():
        return shipped, _IN_BOX
    name = f"shift-{platform.machine()}-{sha256_hex(SOURCE.read_bytes())[:16]}"
    built = Path(platformdirs.user_cache_dir("envsdk")) / name
    if not built.is_file():
        build(built)
    return built, _IN_BOX


def variables(shift: str) -> dict[str, str]:
    """Environment variables that move the clock by ``+400d``, ``-2h``, ``+90s``, once the library is in the box.

    Raises:
        UsageError: ``bad_clock_shift`` for anything else.
    """
    match = _SHIFT.fullmatch(shift)
    if match is None:
        raise UsageError(f"{shift!r} is no shift of a clock", code="bad_clock_shift", hint="write +400d, -2h or +90s")
    seconds = int(match[1] + match[2]) * _UNITS_S[match[3]]
    return {"LD_PRELOAD": _IN_BOX, "ENVSDK_CLOCK_SHIFT_S": str(seconds)}


def build(target: Path) -> None:
    """Compile the library to ``target``, atomically.

    Raises:
        PrerequisiteError: ``no_clock_shift``: no compiler, or it fails.
    """
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    what = f"no library that shifts the clock is shipped for {platform.machine()}"
    if compiler is None:
        raise PrerequisiteError(what, code="no_clock_shift", hint="apt-get install gcc")
    with replacing(target) as draft:
        command = [compiler, *FLAGS, *LINK, "-o", str(draft), str(SOURCE)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise PrerequisiteError(f"{what}: {ended.stderr[-400:]}", code="no_clock_shift", hint="apt-get install gcc")
        draft.chmod(0o644)


if __name__ == "__main__":
    build(SOURCE.with_name(f"shift-{platform.machine()}"))
