"""``static``: reading the files of the task finds no fault."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from envsdk.checks.check import Check, Finding, fails, passes
from envsdk.checks.image_files import image_view
from envsdk.checks.lint import (
    downloads,
    line_ends,
    python_downloads,
    python_syntax,
    reward_path,
    run_bits,
    status,
    unpinned,
)
from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.lint.names import UnknownPath, unknown_paths
from envsdk.checks.lint.spoken_names import spoken_names
from envsdk.checks.stage import Stage

RULES = (
    line_ends.rule,
    run_bits.rule,
    reward_path.rule,
    status.rule,
    downloads.rule,
    python_downloads.rule,
    python_syntax.rule,
    unpinned.rule,
)
_SHOWN = 20


async def _examine(stage: Stage) -> Finding:
    files = read_task_files(stage.task)
    faults = [fault for rule in RULES for fault in rule(files)]
    faults += [path.fault() for path in await _absent(stage, unknown_paths(files))]
    spoken = list(spoken_names(files, await _texts(stage)))
    given = await _present(stage, {artifact for artifact, _ in spoken})
    faults += [fault for artifact, fault in spoken if artifact not in given]  # a stub of the image names its own parts
    if not faults:
        return passes(f"{len(files.texts)} files read")
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return fails(f"{faults[0]}{more}", faults=[_row(fault) for fault in faults[:_SHOWN]])


async def _absent(stage: Stage, candidates: Iterable[UnknownPath]) -> list[UnknownPath]:
    """Those that are not in the pristine image either."""
    found = list(candidates)
    present = await _present(stage, {candidate.path for candidate in found})
    return [candidate for candidate in found if candidate.path not in present]


async def _texts(stage: Stage) -> str:
    """What the image's small files say."""
    return "\n".join((await image_view(stage)).files.values()) if stage.has_box else ""


async def _present(stage: Stage, paths: set[str]) -> set[str]:
    """Those that lie in the pristine image."""
    if not paths or not stage.has_box:
        return set()
    asked = " ".join(map(shlex.quote, sorted(paths)))
    listed = await stage.probe(f'for p in {asked}; do [ -e "$p" ] && echo "$p"; done; true')
    return set(listed.stdout.decode("utf-8", "replace").splitlines())


def _row(fault: Fault) -> dict[str, object]:
    return {"code": fault.code, "file": fault.file, "line": fault.line, "what": fault.what}


CHECK = Check(
    id="static",
    question="Does reading scripts and manifests find no fault?",
    fix="each fault names its file, its line and what to write instead",
    examine=_examine,
    runs_verifier=False,
)
