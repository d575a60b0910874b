"""``envsdk train``: train a model on what a query finds."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.config import read_settings
from envsdk.errors import EnvsdkError, Interruption, UsageError
from trainer.claim import claimed
from trainer.cli.console import Lines
from trainer.config import Resolved, TrainConfig, resolve
from trainer.run_dir import CONFIG, RUN, RunDir


def train(  # noqa: PLR0917 - typer reads options from the signature
    query: Annotated[str | None, typer.Option(help="Which tasks, in the registry's language.")] = None,
    model: Annotated[str | None, typer.Option(help="A model's name (smollm2) or folder.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampler, learner and engine.")] = None,
    sandbox: SandboxOption = None,
    registry: Annotated[str | None, typer.Option(help="A database or server URL.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting, as name=value; see --dry-run.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with a table [train].")] = None,
    name: Annotated[str, typer.Option(help="The run's folder under runs/.")] = "train",
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run NAME, by its own settings.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print every setting with its origin, and stop.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Train with asynchronous GRPO on the tasks that a query finds.

    Examples: envsdk train --query "status:learnable" --steps 20 --name first; envsdk train --name first --resume
    """
    flags: dict[str, Any] = {"query": query, "model": model, "steps": steps, "learner.lr": lr, "seed": seed}
    flags |= {"sandbox": sandbox, "registry": registry}
    flags |= dict(_setting(text) for text in settings or [])
    if not name or name in {".", "..", "latest"} or "/" in name:
        raise UsageError(f"{name!r} is no run's name", code="bad_run_name", hint="one word: --name first")
    path = runs / name
    if resume and not (path / CONFIG).is_file():
        hint = "--name and --runs say which; without --resume a new run is started"
        raise UsageError("there is no run to go on with", code="no_run", where=str(path), hint=hint)
    if resume and config is not None:
        raise UsageError(
            "a resumed run has its settings already, and --config gives others",
            code="other_run",
            hint="leave it out; single settings may change: --steps 30, --set NAME=VALUE",
            where=str(config),
        )
    resolved = resolve(flags, config=path / CONFIG if resume else config)
    if resume:
        _require_same(resolved.config, path / CONFIG)
    if dry_run:
        emit(success(settings=resolved.config, origins=resolved.origins), as_json=as_json, text=_listing(resolved))
        return
    try:
        result = asyncio.run(_train(resolved.config, path, resume=resume))
    except KeyboardInterrupt:
        if not (path / RUN).is_file():
            raise
        again = shlex.join(["envsdk", "train", "--runs", str(runs), "--name", name, "--resume"])
        raise Interruption("interrupted; what ended is kept", hint=again, where=str(path)) from None
    emit(success(**result), as_json=as_json, text=closing(result))
    typer.echo(f"read it: envsdk report {path}; measure it: envsdk eval --set NAME@REV --model {path}/model", err=True)


def closing(result: Mapping[str, Any]) -> str:
    """A finished run in one line; the rewards are those of launched episodes, as each step's line shows them."""
    first, last = ("-" if one is None else f"{one:.3f}" for one in (result["reward_first"], result["reward_last"]))
    return f"{result['steps']} steps, mean reward of launched episodes {first} -> {last}: {result['run_dir']}"


async def _train(config: TrainConfig, path: Path, *, resume: bool) -> dict[str, Any]:
    from trainer.engines.environment import prepare_environment

    engine = config.engine
    prepare_environment(kv_cache_gib=engine.kv_cache_gib, threads=engine.threads, compiled=engine.compile)
    from trainer.loop import train as run_training  # loads torch, which reads the environment

    if not config.query:
        raise UsageError("no tasks to train on: the query is empty", code="no_query", hint="--query 'status:learnable'")
    with claimed(path):
        run = RunDir.open(path) if resume else RunDir.create(path, config, model=config.model)
        try:
            return asdict(await run_training(config, run, say=Lines()))
        except EnvsdkError:
            run.discard_unstarted()
            raise


_KEPT = ("query", "model")
"""What a run is; another query or model is another run."""


def _require_same(config: TrainConfig, file: Path) -> None:
    began = read_settings(file).get("train", {})
    for name in _KEPT:
        now = getattr(config, name)
        if name in began and now != began[name]:
            raise UsageError(
                f"the run was started with {name} {began[name]!r}, not {now!r}",
                code="other_run",
                hint="leave it out, or start a new run: --name another",
                where=str(file),
            )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text!r} has no value", code="bad_setting", hint="--set engine.threads=0,1")
    return name, value


def _listing(resolved: Resolved) -> str:
    return "\n".join(resolved.lines())
