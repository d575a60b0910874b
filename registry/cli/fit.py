"""``envsdk registry fit``: calibrate anyone's table of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import plain, table


def fit(
    responses: Annotated[Path, typer.Argument(metavar="RESPONSES.csv", help="Columns model, task, trials, passes.")],
    *,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write SVG plots here.")] = None,
    between: Annotated[
        tuple[str, str] | None, typer.Option(metavar="EARLIER LATER", help="Flag tasks that moved alone between two.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Fit a beta-binomial Rasch model: difficulty of tasks, ability of models, over-dispersion, and what looks odd.

    Example: envsdk registry fit responses.csv --plots plots/
    """
    from registry.calibration.plots import difficulty_plot, information_plot
    from registry.calibration.report import report_fit
    from registry.calibration.responses import read_responses

    found = report_fit(read_responses(responses), between=between)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for name, text in (("difficulty", difficulty_plot(found)), ("information", information_plot(found))):
            (plots / f"{name}.svg").write_text(text, encoding="utf-8")
            typer.echo(f"wrote {plots / name}.svg", err=True)
    for flag in found.flags:
        typer.echo(f"? {flag.flag} {flag.task}: {flag.why}", err=True)
    envelope = success(
        items=plain(found.items),
        abilities=plain(found.abilities),
        overdispersion=found.overdispersion,
        flags=plain(found.flags),
    )
    rows = [
        (item.task, f"{item.difficulty:.3f}", f"{item.se:.3f}", f"{item.low:.3f}..{item.high:.3f}")
        for item in found.items
    ]
    able = [(model.model, f"{model.ability:.3f}", f"{model.se:.3f}") for model in found.abilities]
    cling = "near 0, all trials of a model at a task end alike; large, they are independent"
    parts = [
        table(rows, head=("task", "difficulty", "se", "90 %")),
        table(able, head=("model", "ability", "se")),
        f"over-dispersion m = {found.overdispersion:.3f}: {cling}",
    ]
    emit(envelope, as_json=as_json, text="\n\n".join(parts))
