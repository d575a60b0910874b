"""``envsdk registry check``: look for what should not be."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.errors import FaultyError
from registry.cli.options import RegistryOption, open_local, plain


def check(
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Read every blob and check its hash.")] = False,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Check the registry's integrity. Exit 1 where something is wrong.

    Example: envsdk registry check --deep
    """
    from registry.integrity import look

    with open_local(registry) as opened, opened.database.reading() as session:
        findings = list(look(session, opened.blobs, deep=deep))
    lines = [f"✘ {item.code} {item.where}: {item.why} ({item.fix})" for item in findings] or ["✔ nothing wrong"]
    errors = [FaultyError(item.why, code=item.code, hint=item.fix, where=item.where) for item in findings]
    finish(errors, as_json=as_json, text="\n".join(lines), sound=not findings, findings=plain(findings))
