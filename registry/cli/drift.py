"""``envsdk registry drift``: tasks that moved between two versions of a policy while their neighbours did not."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.errors import FaultyError
from registry.cli.options import RegistryOption, open_local, plain, table


def drift(
    policy: Annotated[str, typer.Argument(metavar="LINEAGE", help="Whose tasks.")],
    *,
    since: Annotated[
        int | None, typer.Option(min=1, metavar="VERSION", help="Where the later side begins; else half-way.")
    ] = None,
    against: Annotated[str, typer.Option(metavar="LINEAGE", help="Compare with this policy instead.")] = "",
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Flag tasks that moved by more than four standard errors against those of their difficulty. Exit 1 where any did.

    Example: envsdk registry drift smollm2-135m --since 40
    """
    from registry.calibration.drift import find_drift

    with open_local(registry) as opened, opened.database.reading() as session:
        found = find_drift(session, policy, since=since, against=against)
    typer.echo(f"{found.tasks} tasks on both sides, {len(found.drifted)} drifted", err=True)
    rows = [
        (
            one.slug,
            f"{one.before[0]}/{one.before[1]}",
            f"{one.after[0]}/{one.after[1]}",
            f"{one.moved:+.1f} se",
            ", ".join(one.episodes),
        )
        for one in found.drifted
    ]
    head = ("slug", "before", "after", "moved alone", "read these episodes")
    flags = [{"flag": "drifted", **plain(one)} for one in found.drifted]
    errors = [
        FaultyError(
            f"{one.slug} moved {one.moved:+.1f} standard errors against tasks of its difficulty",
            code="drifted",
            hint="read the newest episodes behind it",
            where=one.task_digest,
        )
        for one in found.drifted
    ]
    finish(errors, as_json=as_json, text=table(rows, head=head), tasks=found.tasks, since=found.since, flags=flags)
