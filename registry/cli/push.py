"""``envsdk registry push``: put tasks into a registry, with the check reports that prove them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.errors import FaultyError
from envsdk.files.scratch import scratch
from registry.cli.options import RegistryOption, plain

if TYPE_CHECKING:
    from envsdk.checks.report import CheckReport
    from envsdk.spec.model import Task
    from registry.tasks import Pushed

_STANDING = {
    "checked": "checked",
    "failed": "draft: a check failed",
    "partial": "draft: not every check was answered",
    "none": "draft: not checked",
}
"""What is said of a pushed task, by what its reports come to."""


def push(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="What `envsdk check` takes: directories, .py files, families."),
    ],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Push tasks. What `envsdk check` passed enters as checked, the rest as drafts. Exit 1 where one is rejected.

    Example: envsdk check tasks/ && envsdk registry push tasks/
    """
    from envsdk.checks.gather import gather
    from registry.acceptance import Rejected
    from registry.client import open_registry

    with scratch("push") as folder:
        loaded = gather(sources, folder)
        reports = [report for task in loaded.tasks if (report := _kept_report(task)) is not None]
        with open_registry(registry) as opened:
            result = opened.push(loaded.tasks, reports)
    rejected = [Rejected(item.path, item.code, item.why) for item in loaded.rejected] + list(result.rejected)
    lines = [_line(item) for item in result.pushed]
    lines += [f"✘ {item.which} {item.code}: {item.why}" for item in rejected]
    drafts = {item.verified for item in result.pushed} - {"checked"}
    if drafts:
        count = sum(item.verified != "checked" for item in result.pushed)
        todo = "mend what `envsdk check` says of them" if drafts == {"failed"} else "run `envsdk check` on them"
        typer.echo(f"{count} of {len(result.pushed)} are drafts: {todo}, then push again", err=True)
    errors = [FaultyError(item.why, code=item.code, where=item.which) for item in rejected]
    text = "\n".join(lines)
    finish(errors, as_json=as_json, text=text, pushed=plain(result.pushed), rejected=plain(rejected))


def _line(item: Pushed) -> str:
    mark = "✔" if item.verified == "checked" else "·"
    same = f"is the same task and verifier as {item.known_as}, its name there: " if item.known_as else ""
    return f"{mark} {item.slug} {same}{_STANDING[item.verified]}"


def _kept_report(task: Task) -> CheckReport | None:
    """The report that `envsdk check` kept for this very content, from whichever sandbox."""
    from envsdk.checks import kept
    from envsdk.checks.catalogue import choose

    asked = [check.id for check in choose(None)]
    for sandbox in ("docker", "bubblewrap", ""):
        if (report := kept.find(task, asked, sandbox)) is not None:
            return report
    return None
