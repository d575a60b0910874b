"""``envsdk bench``: measurements and plans. ``collect``: how long a batch takes under each way to schedule it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from envsdk.errors import UsageError
from trainer.cli.console import Lines

if TYPE_CHECKING:
    from trainer.simulation.collect import ArmResult

app = typer.Typer(no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure and plan without a model."""


@app.command()
def collect(  # noqa: PLR0917 - typer reads options from the signature
    trace: Annotated[
        Path | None, typer.Option(help="CSV of trials: task, total_s, and passed, setup_s, agent_s, verify_s.")
    ] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms; may be repeated.")] = None,
    groups: Annotated[int, typer.Option(min=1, help="Groups of a batch.")] = 8,
    group_size: Annotated[int, typer.Option(min=1, help="Trials of a group.")] = 8,
    slots: Annotated[int, typer.Option(min=1, help="Trials at once.")] = 64,
    batches: Annotated[int, typer.Option(min=2, help="Batches simulated for each arm.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Simulate collecting batches from recorded durations: time, what was waited for, and what each way keeps.

    Example: envsdk bench collect --trace durations.csv --slots 32
    """
    from trainer.simulation.collect import ARMS, ArmName, CollectSetup
    from trainer.simulation.collect import collect as simulate
    from trainer.simulation.trials import invented_trials, read_trials

    unknown = sorted(set(arm or ()) - set(get_args(ArmName)))
    if unknown:
        raise UsageError(f"no such arm: {', '.join(unknown)}", code="unknown_arm", hint=f"arms are {', '.join(ARMS)}")
    say = Lines()
    recording = invented_trials(seed=seed) if trace is None else read_trials(trace)
    timed = sum(len(trials) for trials in recording.by_task.values())
    if trace is None:
        say("no --trace: the durations are invented, with a long tail; give recorded ones for figures to quote")
    say(f"{timed} timed trials of {len(recording.by_task)} tasks, {recording.untimed} rows without a duration")
    setup = CollectSetup(groups_per_batch=groups, group_size=group_size, slots=slots, batches=batches, seed=seed)
    chosen = [name for name in ARMS if arm is None or name in arm]
    found = simulate(recording, setup, arms=chosen, report=lambda name: say(f"simulating {name}"))
    envelope = success(
        arms=[_as_json(result) for result in found],
        trace="invented" if trace is None else str(trace),
        trials=timed,
        untimed=recording.untimed,
    )
    emit(envelope, as_json=as_json, text=_table(found))


def _as_json(result: ArmResult) -> dict[str, Any]:
    row = asdict(result)
    kept, launched = row.pop("kept"), row.pop("launched")
    return {**row, "composition": {"kept": kept, "launched": launched}}


def _table(results: list[ArmResult]) -> str:
    lines = [
        f"{'arm':<24} {'batch s':>9} {'less':>6} {'95 % interval':>17}   {'kept/launched s':>17}  {'pass':>11}  path"
    ]
    for r in results:
        path = ", ".join(f"{name} {seconds:.0f}" for name, seconds in r.attribution.items())
        lines.append(
            f"{r.name:<24} {r.collect_s:>9.1f} {r.reduction:>6.0%} {r.low:>8.0%}..{r.high:<7.0%}   "
            f"{r.kept.mean_duration_s or 0:>8.1f}/{r.launched.mean_duration_s or 0:<8.1f}  "
            f"{r.kept.pass_rate or 0:>5.2f}/{r.launched.pass_rate or 0:<5.2f}  {path}"
        )
    return "\n".join(lines)
