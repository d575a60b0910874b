"""Where the helper program is: shipped for x86_64, built once from source with the machine's compiler elsewhere.

The helper (``helper/*.h``, ``helper/helper.c``) needs no C library, so one file of about 12 kB runs in any image, even
one without a shell. ``python -m envsdk.sandboxes.program`` rebuilds the shipped file; a test compares the two.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs

from envsdk.errors import PrerequisiteError
from envsdk.files.replace import replacing

SOURCE_DIR = Path(__file__).parent / "helper"
FLAGS = (
    *("-Os", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-no-pie", "-s"),
    *("-fno-asynchronous-unwind-tables", "-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none"),
    *("-Wl,-z,noseparate-code", "-Wall", "-Wextra", "-Wno-unused-function"),
)
_SOURCES = ("sys.h", "users.h", "tree.h", "ops.h", "child.h", "launch.h", "helper.c")
_COMPILERS = ("cc", "gcc", "clang")


def helper_path() -> Path:
    """The helper for this machine's processor. Raises `PrerequisiteError` (``no_helper``) where none can be had."""
    shipped = SOURCE_DIR / f"helper-{platform.machine()}"
    if shipped.is_file():
        return shipped
    built = Path(platformdirs.user_cache_dir("envsdk")) / f"helper-{platform.machine()}-{source_digest()[:16]}"
    if not built.is_file():
        build(built)
    return built


def source_digest() -> str:
    """SHA-256 over the helper's sources and build flags."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for name in _SOURCES:
        digest.update((SOURCE_DIR / name).read_bytes())
    return digest.hexdigest()


def build(target: Path) -> None:
    """Compile the helper to ``target``, atomically. Raises `PrerequisiteError` without a compiler or on its failure."""
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise PrerequisiteError(
            f"no sandbox helper is shipped for {platform.machine()} and no C compiler is here to build it",
            code="no_helper",
            hint="apt-get install gcc",
        )
    with replacing(target.absolute()) as draft:
        command = [compiler, *FLAGS, "-o", str(draft), "helper.c"]
        ended = subprocess.run(command, cwd=SOURCE_DIR, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise PrerequisiteError(
                f"{compiler} could not build the sandbox helper: {ended.stderr.strip()[-400:]}",
                code="no_helper",
                hint="apt-get install gcc linux-libc-dev",
            )
        draft.chmod(0o755)


def compiler_version() -> str:
    """First line of what the compiler says of itself; empty without one."""
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        return ""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def ship() -> Path:
    """Rebuild the shipped file of this machine's processor, and note beside it what it was built from."""
    target = SOURCE_DIR / f"helper-{platform.machine()}"
    build(target)
    note = f"source {source_digest()}\ncompiler {compiler_version()}\n"
    target.with_suffix(".built").write_text(note, encoding="utf-8")
    return target


if __name__ == "__main__":
    print(ship(), file=sys.stdout)
