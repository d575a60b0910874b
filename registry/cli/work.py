"""``envsdk registry work``: do the registry's background jobs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def work(
    *,
    once: Annotated[bool, typer.Option("--once", help="End when no job is left.")] = False,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Do calibrate and refresh jobs until interrupted. Several workers share them; a dead one's job is taken up again.

    Example: envsdk registry work
    """
    from registry.worker import serve_jobs

    with open_local(registry) as opened:
        done = asyncio.run(serve_jobs(opened, forever=not once))
    emit(success(done=done), as_json=as_json, text=f"{done} jobs done")
