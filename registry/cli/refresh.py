"""``envsdk registry refresh``: propose a new revision of a set, show it, publish it on confirmation."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.errors import UsageError
from envsdk.files.scratch import scratch
from registry.cli.options import RegistryOption, open_local

if TYPE_CHECKING:
    from registry.calibration.campaign import Campaign
    from registry.local import LocalRegistry


def refresh(
    name: Annotated[str, typer.Argument(metavar="SET", help="A task set; leave out with --publish or --dismiss.")] = "",
    *,
    lineage: Annotated[str, typer.Option(help="Whose saturation counts; else the reference lineage.")] = "",
    policy: Annotated[str, typer.Option(help="Measure replacements with it: vllm:MODEL or openai:URL#MODEL.")] = "",
    publish: Annotated[int | None, typer.Option(metavar="PROPOSAL", help="Publish this proposal.")] = None,
    dismiss: Annotated[int | None, typer.Option(metavar="PROPOSAL", help="Close this proposal.")] = None,
    sandbox: SandboxOption = None,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Propose: retire what is saturated, draw, check and measure replacements. Nothing changes until --publish.

    Where nothing is worn out, nothing is stored: `proposal` is null.

    Examples: envsdk registry refresh shell --policy vllm:smollm2; envsdk registry refresh --publish 3
    """
    from registry.refresh.publish import dismiss_proposal, publish_proposal

    if sum((bool(name), publish is not None, dismiss is not None)) != 1:
        raise UsageError("give one of SET, --publish or --dismiss", code="usage")
    with open_local(registry) as opened:
        if publish is not None:
            with opened.database.writing() as session:
                revision = publish_proposal(session, publish, by=_user())
                result = {"proposal": publish, "revision": revision.number, "digest": revision.digest}
            emit(success(**result), as_json=as_json, text=f"published as revision {result['revision']}")
        elif dismiss is not None:
            with opened.database.writing() as session:
                dismiss_proposal(session, dismiss, by=_user())
            emit(success(proposal=dismiss), as_json=as_json, text=f"dismissed proposal {dismiss}")
        else:
            number, body = asyncio.run(_propose(opened, name, lineage, policy, sandbox))
            emit(success(proposal=number, **body), as_json=as_json, text=_text(number, body))


def _user() -> str:
    """Who runs the command, as far as the system says."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user that has a number alone, as in many containers
        name = f"user {os.getuid()}"
    return f"{name} on {socket.gethostname()}"


async def _propose(
    registry: LocalRegistry, name: str, lineage: str, policy: str, sandbox: str | None
) -> tuple[int | None, dict[str, Any]]:
    from envsdk.waiting import told
    from registry.cli.progress import line, teller
    from registry.refresh.job import propose_refresh

    began = time.monotonic()
    latest: list[Campaign] = []

    def say(text: str) -> None:
        typer.echo(text, err=True)

    def standing() -> str:
        if latest and len(latest[-1].measured) < latest[-1].tasks:
            return line(latest[-1])
        return f"planning, drawing and checking replacements, {time.monotonic() - began:.0f} s so far"

    with scratch("refresh") as folder:
        work = propose_refresh(
            registry,
            name,
            lineage=lineage,
            policy=policy,
            sandbox=sandbox,
            folder=folder,
            heard=lambda found, wanted: say(f"{found} of {wanted} replacements"),
            looked=teller(latest.append),
        )
        return await told(work, say, standing)


def _text(number: int | None, body: dict[str, Any]) -> str:
    lines = [
        f"{body['set']}@{body['revision']} for {body['policy']}: {body['size_before']} -> {body['size_after']} tasks"
    ]
    for one in body["retire"]:
        rate = f"{one['mean']:.2f} ({one['low']:.2f}-{one['high']:.2f}) n={one['n']}"
        lines.append(f"- {one['slug']}: {one['why']}, pass rate {rate}, E = {one['e_value']:.1f}")
    for one in body["add"]:
        at = one["planned"]["predicted"]
        level = ", ".join(f"{knob}={value}" for knob, value in one["planned"]["level"].items())
        measured = one["measured"]
        seen = f"; measured {measured['mean']:.2f}, {measured['verdict']}" if measured else ""
        lines.append(f"+ {one['slug']} ({level}): predicted {at['mean']:.2f} ({at['low']:.2f}-{at['high']:.2f}){seen}")
    lines += [f"? {one['slug']}: not replaced, {one['why']}" for one in body["not_replaced"]]
    lines += [f"✘ {one['family']} {one['slug']}: {one['why']}" for one in body["refused"]]
    if number is None:
        return "\n".join([*lines, "nothing is worn out: there is nothing to propose"])
    spent = body["spent"]
    if spent["episodes"]:
        lines.append(f"measuring took {spent['episodes']} episodes, {spent['generated_tokens']} generated tokens")
    return "\n".join([*lines, f"publish it: envsdk registry refresh --publish {number}"])
