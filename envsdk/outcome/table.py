"""The outcome table as data: read once from ``table.yaml`` beside this file, and checked as it is read.

Promises: every sign and cause that a row names exists. What a sign means is `envsdk.outcome.signs`; which row applies
to an episode, `envsdk.outcome.classify`. The page ``docs/reference/outcomes.md`` is written from it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import Field, model_validator

from envsdk.frozen import Frozen
from envsdk.outcome import clock_signs, reply_signs, verifier_signs  # noqa: F401 - each registers its signs
from envsdk.outcome.signs import SIGNS

Side = Literal["model", "machinery", "undecided"]


class Consequence(Frozen):
    """What follows from a class."""

    graded: bool
    in_gradient: bool
    in_baseline: bool
    redispatch: bool
    counts_in_eval: bool


class Cause(Frozen):
    """One cause: whose it is, what it says, what a person does about it.

    A flag that is given stands in place of the class's.
    """

    side: Side
    sentence: str
    action: str
    graded: bool | None = None
    in_gradient: bool | None = None
    in_baseline: bool | None = None
    redispatch: bool | None = None
    counts_in_eval: bool | None = None

    @property
    def flags(self) -> dict[str, bool]:
        """Those in which it differs from its class."""
        given = {name: getattr(self, name) for name in Consequence.model_fields}
        return {name: value for name, value in given.items() if value is not None}


class Rule(Frozen):
    """One row. It fits where every given condition holds; a condition that is empty asks nothing.

    Attributes:
        ended_by, phase, end: the observed value, or the cause found so far, is one of these.
        signs: all were observed (``if`` in the file); ``unless``: none was.
        cause: what the row concludes; ``keep`` keeps the end's cause.
        reward: which number counts (grades only).
    """

    name: str
    ended_by: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    signs: tuple[str, ...] = Field(default=(), alias="if")
    unless: tuple[str, ...] = ()
    cause: str
    reward: Literal["verifier", "clean", "bottom", "none"] = "none"


class Table(Frozen):
    """The whole table. Raises ValueError where a row names a sign or a cause that does not exist."""

    version: int
    classes: dict[str, Consequence]
    causes: dict[str, Cause]
    ends: tuple[Rule, ...]
    grades: tuple[Rule, ...]

    def consequence(self, outcome_class: str, cause: str) -> Consequence:
        """What follows from an outcome: its class's flags, and its cause's own over them."""
        return self.classes[outcome_class].model_copy(update=self.causes[cause].flags)

    @model_validator(mode="after")
    def _names_exist(self) -> Table:
        for rule in (*self.ends, *self.grades):
            unknown = [sign for sign in (*rule.signs, *rule.unless) if sign not in SIGNS]
            unknown += [cause for cause in (rule.cause, *rule.end) if cause != "keep" and cause not in self.causes]
            if unknown:
                raise ValueError(f"outcome table, row {rule.name!r}: unknown names {unknown}")
        return self


@cache
def outcome_table() -> Table:
    """The project's table."""
    text = files(__package__).joinpath("table.yaml").read_text(encoding="utf-8")
    return Table.model_validate(yaml.safe_load(text))
