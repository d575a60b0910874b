"""Which files a task wants: its declared artifacts, and below a declared folder what the oracle writes there."""

from __future__ import annotations

from envsdk.checks.stage import Stage


async def target_files(stage: Stage) -> list[str]:
    """Paths of the files that a submission consists of, sorted. Raises `SandboxError`."""
    if not stage.has_box:
        return [stage.answer_path]
    run = await stage.oracle()
    written = sorted(run.outputs) if run is not None else []
    folders = run.folders if run is not None else ()
    wanted = set(written)
    for path in stage.artifacts:
        inside = [other for other in written if other.startswith(path.rstrip("/") + "/")]
        if not inside and path not in folders and not path.endswith("/") and path != _workdir(stage):
            wanted.add(path)
    return sorted(wanted)


def _workdir(stage: Stage) -> str:
    container = stage.task.spec.container
    return container.workdir if container else ""
