"""``envsdk registry diff``: what changed between two revisions of task sets."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, plain


def diff(
    before: Annotated[str, typer.Argument(metavar="SET@REVISION", help="The older revision.")],
    after: Annotated[str, typer.Argument(metavar="SET@REVISION", help="The newer revision.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare two task-set revisions.

    Example: envsdk registry diff shell@1 shell@2
    """
    from registry.client import open_registry
    from registry.sets import compare

    with open_registry(registry) as opened:
        found = compare(opened.revision(before), opened.revision(after))
    lines = [f"+ {item.slug} {item.task_digest[:12]}" for item in found.added]
    lines += [f"- {item.slug} {item.task_digest[:12]}" for item in found.removed]
    envelope = success(added=plain(found.added), removed=plain(found.removed), kept=found.kept)
    emit(envelope, as_json=as_json, text="\n".join([*lines, f"{found.kept} kept"]))
