"""Which task next: where the model can learn most, with a share of draws for what it seems to know or not to reach.

Promises: the same seed, tasks and observations give the same draws; the state is JSON and restores exactly; evidence
fades by the registry's rule, with every weight version and not with every episode, and the prior never does; a share of
the draws goes to the tasks that were drawn longest ago, so that nothing stays out of use on old evidence; groups
without variance count as evidence like all others. Not promised: anything about the order of two equally good tasks.

Learnability of a task is p (1 - p), the variance of its reward, which bounds what a group can teach. Thompson sampling:
a pass rate is drawn from each task's posterior and the task with the largest p (1 - p) of the drawn rates is taken, so
that an uncertain task is tried in proportion to the chance of its being the best.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from envsdk.errors import FaultyError
from envsdk.spec.model import Task

RETEST_SHARE = 0.1
FORGETTING = 0.9
"""What one weight version leaves of the counts before it: the model that made them is gone. The registry's own."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is known of a task's pass rate.

    Attributes:
        alpha, beta: the prior, a Beta distribution; uniform where nobody said.
        passes, failures: what was counted since, faded.
        version: weight version that the counts were last brought to.
    """

    alpha: float = 1.0
    beta: float = 1.0
    passes: float = 0.0
    failures: float = 0.0
    version: int = 0

    @property
    def posterior(self) -> tuple[float, float]:
        """Parameters of the Beta distribution of the pass rate."""
        return self.alpha + self.passes, self.beta + self.failures

    def after(self, *, passed: int, failed: int, version: int) -> Belief:
        """With outcomes of ``version``; those of an older one come late, they fade nothing."""
        kept = FORGETTING ** max(0, version - self.version)
        passes, failures = kept * self.passes + passed, kept * self.failures + failed
        return Belief(self.alpha, self.beta, passes, failures, max(version, self.version))


class Sampler:
    """Draws tasks, with repetition.

    Args:
        tasks: the pinned task set.
        beliefs: what is known of the tasks, by task digest, of the model that the run begins with.
        seed: of all draws.
        retest_share: share of the draws that go to the task drawn longest ago.

    Raises:
        FaultyError: ``no_tasks``: there is nothing to draw from.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        beliefs: Mapping[str, Belief] | None = None,
        seed: int = 0,
        retest_share: float = RETEST_SHARE,
    ) -> None:
        if not tasks:
            raise FaultyError("no tasks to train on", code="no_tasks", hint="widen the query")
        self._tasks = {task.digests.task: task for task in tasks}
        given = beliefs or {}
        self._beliefs = {digest: given.get(digest, Belief()) for digest in self._tasks}
        self._drawn_at = dict.fromkeys(self._tasks, -1)
        self._draws = 0
        self._retest_share = retest_share
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def draw(self) -> Task:
        """The next task. The quarter of the tasks that were drawn last rests, so that groups in flight differ."""
        by_age = sorted(self._tasks, key=lambda digest: (self._drawn_at[digest], digest))
        candidates = by_age[: len(by_age) - len(by_age) // 4]
        if self._random.random() < self._retest_share:
            oldest = self._drawn_at[by_age[0]]
            digest = self._random.choice([d for d in by_age if self._drawn_at[d] == oldest])
        else:
            digest = max(candidates, key=self._sampled_learnability)
        self._drawn_at[digest] = self._draws
        self._draws += 1
        return self._tasks[digest]

    def task(self, task_digest: str) -> Task:
        """One of the tasks, by its digest."""
        return self._tasks[task_digest]

    def observe(self, task_digest: str, *, passed: int, graded: int, version: int) -> None:
        """Graded episodes of one weight version; ungraded ones are no evidence. A task of another set is ignored."""
        if task_digest in self._beliefs and graded:
            before = self._beliefs[task_digest]
            self._beliefs[task_digest] = before.after(passed=passed, failed=graded - passed, version=version)

    def learnability(self, task_digest: str) -> float:
        """E[p (1 - p)] under the task's posterior: a b / ((a + b) (a + b + 1)) for Beta(a, b)."""
        alpha, beta = self._beliefs[task_digest].posterior
        return alpha * beta / ((alpha + beta) * (alpha + beta + 1))

    def state(self) -> dict[str, Any]:
        """Everything `restore` needs, as JSON."""
        version, words, gauss = self._random.getstate()
        return {
            "draws": self._draws,
            "drawn_at": dict(self._drawn_at),
            "beliefs": {digest: asdict(belief) for digest, belief in self._beliefs.items()},
            "random": [version, list(words), gauss],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken; tasks that the state does not know start fresh."""
        self._draws = state["draws"]
        self._drawn_at |= {d: n for d, n in state["drawn_at"].items() if d in self._tasks}
        self._beliefs |= {d: Belief(**kept) for d, kept in state.get("beliefs", {}).items() if d in self._tasks}
        for digest, (passes, failures) in state.get("evidence", {}).items():  # of before priors stood apart
            if digest in self._tasks:
                self._beliefs[digest] = replace(self._beliefs[digest], passes=passes, failures=failures)
        version, words, gauss = state["random"]
        self._random.setstate((version, tuple(words), gauss))

    def _sampled_learnability(self, digest: str) -> float:
        p = self._random.betavariate(*self._beliefs[digest].posterior)
        return p * (1 - p)
