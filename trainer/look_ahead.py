"""The next draws, made before they are needed, so that their boxes can start while the learner works.

Promises: what `upcoming` names is what `draw` returns next, in that order; the state restores it exactly. The price is
that a draw rests on evidence that is ``depth`` groups old.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envsdk.spec.model import Task
from trainer.sampler import Sampler


class LookAhead:
    """A sampler that has drawn ``depth`` tasks already.

    Args:
        sampler: makes the draws.
        depth: draws made ahead, at least one.
        moved: called when other tasks come next.
    """

    def __init__(self, sampler: Sampler, *, depth: int, moved: Callable[[], None] = lambda: None) -> None:
        self._sampler = sampler
        self._depth = depth
        self._moved = moved
        self._ahead: deque[Task] = deque()
        self._fill()

    @property
    def upcoming(self) -> Sequence[Task]:
        """The next ``depth`` tasks, the nearest first."""
        return tuple(self._ahead)

    def draw(self) -> Task:
        """The next task."""
        task = self._ahead.popleft()
        self._fill()
        return task

    def observe(self, task_digest: str, *, passed: int, graded: int, version: int) -> None:
        """As `Sampler.observe`; what was drawn ahead stays drawn."""
        self._sampler.observe(task_digest, passed=passed, graded=graded, version=version)

    def state(self) -> dict[str, Any]:
        """Everything `restore` needs, as JSON."""
        return self._sampler.state() | {"ahead": [task.digests.task for task in self._ahead]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken, of a sampler that looked ahead or of one that did not."""
        self._sampler.restore(state)
        self._ahead = deque(self._sampler.task(digest) for digest in state.get("ahead", ()))
        self._fill()

    def _fill(self) -> None:
        """Draw at once, never when somebody looks: the draws must not depend on when that is."""
        while len(self._ahead) < self._depth:
            self._ahead.append(self._sampler.draw())
        self._moved()
