"""What graded episodes say of a task's difficulty for one policy, before a verifier changed and after.

A count and its interval, and the difficulty as item response theory puts it: the log odds of failing, for a policy of
ability 0 (G. Rasch, 1960), with half an episode added to each side so that none and all have a value. What the registry
estimates over many policies is sharper; this is what the episodes at hand can say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from envsdk.checks.interval import wilson


@dataclass(frozen=True, slots=True)
class Measured:
    """``passed`` of ``graded`` episodes; ungraded ones are in neither."""

    passed: int
    graded: int

    @property
    def difficulty(self) -> float | None:
        """Log odds of failing; `None` where nothing was graded."""
        return log((self.graded - self.passed + 0.5) / (self.passed + 0.5)) if self.graded else None

    def as_json(self) -> dict[str, Any]:
        """Pass rate, its 95 % interval, n and difficulty; `None` where nothing was graded."""
        low, high = wilson(self.passed, self.graded)
        rate = self.passed / self.graded if self.graded else None
        return {"p": rate, "low": low, "high": high, "n": self.graded, "difficulty": self.difficulty}

    def __str__(self) -> str:
        if self.difficulty is None:
            return "nothing graded"
        low, high = wilson(self.passed, self.graded)
        return f"{self.passed} of {self.graded} ({low:.2f} to {high:.2f}), difficulty {self.difficulty:+.2f}"


def measured(outcomes: Iterable[Mapping[str, Any]]) -> Measured:
    """Count outcomes, as `envsdk.outcome.classify` gives them."""
    graded = [outcome for outcome in outcomes if outcome["graded"]]
    return Measured(sum(outcome["outcome_class"] == "model_success" for outcome in graded), len(graded))
