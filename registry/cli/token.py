"""``envsdk registry token``: tokens for those who may write."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local, plain, table

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens for writing over HTTP.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what it is for.")],
    *,
    scope: Annotated[list[str], typer.Option(help="push, outcomes, sets, jobs or read; several allowed.")],
    days: Annotated[float | None, typer.Option(min=0, help="Days until it expires; else never.")] = None,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token. It is shown once.

    Example: envsdk registry token create trainer --scope outcomes
    """
    from registry.tokens import create_token

    with open_local(registry) as opened, opened.database.writing() as session:
        made = create_token(session, name, scopes=scope, days=days)
    emit(success(token=made.secret, prefix=made.prefix, scopes=list(made.scopes)), as_json=as_json, text=made.secret)


@app.command("list")
def list_(*, registry: RegistryOption = None, as_json: JsonFlag = False) -> None:
    """List tokens, without their secrets. Example: envsdk registry token list."""
    from registry.tokens import list_tokens

    with open_local(registry) as opened, opened.database.reading() as session:
        found = list_tokens(session)
    rows = [(item.prefix, item.name, " ".join(item.scopes), item.state) for item in found]
    emit(success(tokens=plain(found)), as_json=as_json, text=table(rows, head=("prefix", "name", "scopes", "state")))


@app.command()
def revoke(
    prefix: Annotated[str, typer.Argument(help="As `list` shows it.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Revoke a token at once. Example: envsdk registry token revoke reg_1a2b3c4d."""
    from registry.tokens import revoke_token

    with open_local(registry) as opened, opened.database.writing() as session:
        revoke_token(session, prefix)
    emit(success(revoked=prefix), as_json=as_json, text=f"{prefix} revoked")
