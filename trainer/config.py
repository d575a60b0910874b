"""The settings of a run: few, validated together, each with the place it came from.

Flags over ``ENVSDK_TRAIN_*`` variables over ``--config`` over the project's file over the user's over defaults; in
TOML the settings stand in the table ``[train]``, and `envsdk.config` says which files are read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from envsdk.config import read_settings, settings_files
from envsdk.errors import SpecError, UsageError
from envsdk.frozen import Frozen
from envsdk.suggest import nearest
from trainer.batch_config import BatchConfig
from trainer.engines.options import EngineOptions
from trainer.learner_config import LearnerConfig
from trainer.loss.preset import preset

_ENV = "ENVSDK_TRAIN_"
_PRESET = "learner.loss"


class TrainConfig(Frozen):
    """One training run.

    Attributes:
        query: which tasks, in the registry's language; resolved once and pinned.
        model: a name that `trainer.models` knows, or a folder.
        groups_per_step: P, groups of one optimizer step.
        group_size: G, episodes of one task that share a baseline.
        staleness: S of the admission rule, in weight versions; 0 waits for every update.
        concurrency: episodes that may act at once.
        verifications: episodes that may be verified at once, beside those that act.
        refills: how often one place of a group is tried again after a failure of the machinery.
        checkpoint_every: steps between checkpoints.
        seed: of the sampler and of every episode, and of learner and engine where they have none of their own.
        sandbox: ``docker`` or ``bubblewrap``; empty for whichever works.
        registry: a database or server URL; empty for ``ENVSDK_REGISTRY`` or the embedded one.
    """

    query: str = ""
    model: str = "smollm2"
    steps: int = Field(default=15, ge=1)
    groups_per_step: int = Field(default=8, ge=1)
    group_size: int = Field(default=8, ge=2)
    staleness: int = Field(default=1, ge=0)
    concurrency: int = Field(default=64, ge=1)
    verifications: int = Field(default=16, ge=1)
    refills: int = Field(default=2, ge=0)
    checkpoint_every: int = Field(default=10, ge=1)
    seed: int = Field(default=0, ge=0, lt=1 << 32)
    sandbox: str = Field(default="", pattern="^(docker|bubblewrap|)$")
    registry: str = ""
    engine: EngineOptions = EngineOptions()
    learner: LearnerConfig = LearnerConfig(batch=BatchConfig(lag_rule="drop_group"))

    @property
    def max_lag(self) -> int | None:
        """Versions that a group's oldest token may be behind when it is taken; `None` where another rule sees to it."""
        return self.learner.batch.max_lag if self.learner.batch.lag_rule == "drop_group" else None

    @model_validator(mode="after")
    def _nothing_is_made_to_be_thrown_away(self) -> Self:
        bound = self.learner.batch.max_lag
        if bound is not None and self.staleness > bound:
            raise ValueError(
                f"staleness {self.staleness} is above learner.batch.max_lag {bound}: what is generated so far ahead "
                "would be too old to train on; lower the one or raise the other"
            )
        return self


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration and, for each setting by its dotted name, where its value came from."""

    config: TrainConfig
    origins: dict[str, str]

    def lines(self) -> Iterator[str]:
        """``name = value    # origin`` for every setting."""
        for name, value in sorted(flatten(self.config.model_dump()).items()):
            yield f"{name} = {value!r}    # {self.origins.get(name, 'default')}"


def resolve(flags: Mapping[str, Any], *, config: Path | None = None) -> Resolved:
    """Merge all sources.

    Args:
        flags: by dotted name; `None` values count as not given.
        config: the file named by ``--config``.

    Raises:
        UsageError: ``no_config``: the file does not exist; ``bad_config``: a file is not TOML, or ``config`` has no
            table [train].
        SpecError: ``invalid_config``: every unknown setting and every value out of range, with its origin.
    """
    values = flatten(TrainConfig().model_dump())
    origins: dict[str, str] = {}
    given = {name: value for name, value in flags.items() if value is not None}
    for origin, settings in [*_files(config), ("environment", _environment()), ("flag", given)]:
        for name, value in _spelled_out(settings).items():
            values[name], origins[name] = value, origin
    try:
        merged = TrainConfig.model_validate(_nest(values))
    except ValidationError as error:
        raise _invalid([_problem(dict(entry), origins) for entry in error.errors()]) from error
    if endless := [
        {"field": name, "value": repr(value), "problem": "is not finite", "where": origins.get(name, "default")}
        for name, value in flatten(merged.model_dump()).items()
        if isinstance(value, float) and not math.isfinite(value)
    ]:
        raise _invalid(endless)
    return Resolved(merged, origins)


def _spelled_out(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A source's settings with its preset, where it names one, as the settings that it stands for, below its others."""
    name = settings.get(_PRESET)
    if not isinstance(name, str):
        return dict(settings)
    below = flatten(preset(name).settings, "learner.")
    return below | {key: value for key, value in settings.items() if key != _PRESET}


def _invalid(problems: Sequence[dict[str, str]]) -> SpecError:
    return SpecError(
        "; ".join(f"{problem['field']}: {problem['problem']}" for problem in problems),
        problems=tuple(problems),
        code="invalid_config",
        hint="envsdk train --dry-run shows every setting and where it came from",
    )


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table as one, by dotted names."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _files(config: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    if config is not None and not config.is_file():
        hint = "give a TOML file with a table [train], or leave --config out"
        raise UsageError("no such configuration file", code="no_config", where=str(config), hint=hint)
    given = [] if config is None else [(config, read_settings(config))]
    if given and "train" not in given[0][1]:  # its settings would be the defaults, in silence
        mistyped = nearest("train", given[0][1])
        hint = f"write [train] for [{mistyped}]" if mistyped else "put the settings under [train]"
        raise UsageError("has no table [train]", code="bad_config", where=str(config), hint=hint)
    for path, tables in [*settings_files(), *given]:
        table = tables.get("train", {})
        if not isinstance(table, dict):
            raise SpecError("[train] is no table", code="invalid_config", where=str(path), hint="write [train]")
        yield str(path), flatten(table)


def _environment() -> dict[str, Any]:
    names = [*flatten(TrainConfig().model_dump()), _PRESET]
    spelled = {name: _ENV + name.upper().replace(".", "_") for name in names}
    return {name: os.environ[variable] for name, variable in spelled.items() if variable in os.environ}


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *tables, last = name.split(".")
        table = nested
        for part in tables:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):  # steps.x beside steps: left whole, to be refused with the rest
                inner = table[part] = {"": inner}
            table = inner
        table[last] = value
    return nested


def _problem(entry: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, str]:
    field = ".".join(str(part) for part in entry["loc"]) or "train"
    value = repr(entry["input"]) if entry["loc"] else ""
    origin = origins.get(field, "default")
    problem = str(entry["msg"])
    if entry["type"] == "extra_forbidden":
        problem = "; ".join(filter(None, ("no such setting", _near(field))))
    elif value:
        problem += f", not {value} (from: {origin})"
    return {"field": field, "value": value, "problem": problem, "where": origin}


def _near(field: str) -> str:
    """The setting that was probably meant: one of a like name, or of its last part's name in another table."""
    known = flatten(TrainConfig().model_dump())
    by_last = {name.rpartition(".")[2]: name for name in known}
    meant = by_last.get(field, "") or nearest(field, known, cutoff=0.6) or by_last.get(nearest(field, by_last), "")
    return f"did you mean {meant!r}?" if meant else ""
