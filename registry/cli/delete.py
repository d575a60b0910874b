"""``envsdk registry delete``: take a revision of a task set back."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def delete(
    reference: Annotated[str, typer.Argument(metavar="SET@NUMBER", help="The revision.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; whoever asks for it is told.")],
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a revision back: it is found no more, and its page says why. Its tasks and its number stay as they are.

    Example: envsdk registry delete shell@3 --reason "held answers"
    """
    from registry.revisions import delete_revision

    with open_local(registry) as opened, opened.database.writing() as session:
        delete_revision(session, reference, reason=reason)
    emit(success(deleted=reference, reason=reason), as_json=as_json, text=f"deleted {reference}: {reason}")
