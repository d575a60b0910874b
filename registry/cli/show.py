"""``envsdk registry show``: everything that is known of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local, plain, rate, table


def show(
    reference: Annotated[str, typer.Argument(metavar="SLUG|DIGEST", help="A slug, or the start of a task digest.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the items of a task: their estimates per policy, checks and state changes.

    Example: envsdk registry show sort-lines
    """
    from registry.detail import find_items

    with open_local(registry) as opened, opened.database.reading() as session:
        items = [plain(item) for item in find_items(session, reference)]
    emit(success(items=items), as_json=as_json, text="\n\n".join(map(_text, items)))


def _text(item: dict[str, Any]) -> str:
    flags = [flag for flag in ("broken", "flaky") if item[flag]]
    head = [
        f"{item['slug']}  {item['verified']}  {' '.join(flags)}".rstrip(),
        f"task {item['task_digest']}",
        f"verifier {item['verifier_digest']}",
    ]
    estimates = [
        (row["policy"] or "(no policy measured)", row["status"], rate(row["mean"], row["low"], row["high"], row["n"]))
        for row in item["estimates"]
    ]
    changes = [
        (row["policy"], f"{row['before']} -> {row['after']}", row["reason"], _when(row["position"]))
        for row in item["changes"]
    ]
    parts = [
        "\n".join(head + _unmet(item["reports"])),
        table(estimates, head=("policy", "status", "pass rate")),
        table(changes, head=("policy", "change", "because", "when")),
    ]
    return "\n".join(part for part in parts if part)


def _unmet(reports: Sequence[dict[str, Any]]) -> list[str]:
    """What the newest report has against the task: the checks that failed or could not be decided."""
    checks = reports[0]["checks"] if reports else ()
    said = {"fail": "failed", "error": "undecided"}
    return [
        f"{said[check['outcome']]} {check['check']}" + (f": {check['why']}" if check["why"] else "")
        for check in checks
        if check["outcome"] in said
    ]


def _when(position: int) -> str:
    """Where a change stands among the outcomes of the whole registry."""
    return f"after outcome {position}" if position else "before any outcome"
