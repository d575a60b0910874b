"""Families: draw tasks by level and seed, the same on every machine."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envsdk.authoring.declare import Declaration, drawn
from envsdk.authoring.draw import Draw, Scalar
from envsdk.authoring.write import write_task
from envsdk.digest import canonical
from envsdk.errors import UsageError
from envsdk.spec.meaning import slug_of
from envsdk.spec.model import Task
from envsdk.suggest import did_you_mean

Level = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Family:
    """A function with typed levels that draws tasks from a seed."""

    declaration: Declaration

    @property
    def name(self) -> str:
        """Its slug, the first part of every task's."""
        return self.declaration.name

    @property
    def levels(self) -> Mapping[str, tuple[Scalar, ...]]:
        """Each knob's values, from the easiest to the hardest."""
        return self.declaration.levels

    def settings(self) -> Iterator[dict[str, Scalar]]:
        """Every combination of level values, the easiest first."""
        for values in itertools.product(*self.levels.values()):
            yield dict(zip(self.levels, values, strict=True))

    def extremes(self) -> list[dict[str, Scalar]]:
        """The easiest level and the hardest; one where they are the same."""
        easiest = self.complete({})
        hardest = {knob: values[-1] for knob, values in self.levels.items()}
        return [easiest] if hardest == easiest else [easiest, hardest]

    def complete(self, level: Level) -> dict[str, Scalar]:
        """``level`` with the easiest value for each knob that it leaves out, in the order of declaration.

        Raises:
            UsageError: a knob or value that the family does not have (code ``bad_level``).
        """
        for knob, value in level.items():
            known = self.levels.get(knob)
            if known is None:
                hint = did_you_mean(knob, self.levels) or f"its levels are {', '.join(self.levels)}"
                raise UsageError(f"no level {knob!r}", code="bad_level", where=self.name, hint=hint)
            # 1 == True and 1 == 1.0, but their tasks differ.
            if not any(value == option and type(value) is type(option) for option in known):
                hint = f"one of {', '.join(map(repr, known))}"
                raise UsageError(f"level {knob} has no value {value!r}", code="bad_level", where=self.name, hint=hint)
        return {knob: level.get(knob, values[0]) for knob, values in self.levels.items()}

    def sample(self, *, seed: int, level: Level | None = None) -> Draw:
        """What the function returns for a seed and level; nothing is written. Raises as `complete` and `drawn` do."""
        full = self.complete(level or {})
        # A text as a seed goes through sha512: the same stream on every machine, Python and hash seed.
        source = random.Random(f"{self.name}\n{canonical(full).decode()}\n{seed}")  # noqa: S311 - not for secrets
        return drawn(self.declaration, source, **full)

    def draw(self, *, seed: int, dest: Path, level: Level | None = None) -> Task:
        """Draw one task, write it as the directory ``dest`` and load it.

        Raises:
            UsageError: no such level, or the draw cannot be written (see `envsdk.authoring.write`).
            SpecError: what was drawn is no valid task.
        """
        full = self.complete(level or {})
        draw = self.sample(seed=seed, level=full)
        return write_task(self.declaration, draw, dest, slug=self.slug(full, seed), level=full, seed=seed)

    def draw_many(self, *, seeds: Iterable[int], dest: Path, level: Level | None = None) -> list[Task]:
        """Draw distinct tasks into folders under ``dest``, one for each seed whose draw no earlier seed has given.

        Raises as `draw` does.
        """
        full = self.complete(level or {})
        seen: set[str] = set()
        tasks = []
        for seed in seeds:
            draw = self.sample(seed=seed, level=full)
            content = repr(draw)
            if content in seen:
                continue
            seen.add(content)
            slug = self.slug(full, seed)
            tasks.append(write_task(self.declaration, draw, dest / slug, slug=slug, level=full, seed=seed))
        return tasks

    def slug(self, level: Level, seed: int) -> str:
        """``family-value-value-seed``."""
        values = [slug_of(str(value)).lower() for value in level.values()]
        return "-".join([self.name, *values, str(seed)])

    def predicted_pass(self, level: Level | None = None) -> float | None:
        """The author's guess of the pass rate at a level, or `None`."""
        guess = self.declaration.predicted_pass
        return None if guess is None else guess(**self.complete(level or {}))
