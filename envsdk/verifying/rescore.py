"""Score a stored episode again with a changed verifier: its kept end state in, a new verdict and outcome out.

The stored episode is not changed. Not promised: the verdict that a verifier would give which asks something beside the
end state (a service, the agent's own box), since only the end state was kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsdk.outcome import classify
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.store import kept_end_state
from envsdk.verifying.verdict import Verdict
from envsdk.verifying.verify import verify

_CONSEQUENCES = ("outcome_class", "cause", "reward", "graded")


@dataclass(frozen=True, slots=True)
class Rescored:
    """One episode, before and after. ``change`` is `None` where class and reward stay."""

    episode_id: str
    policy: str
    before: dict[str, Any]
    after: dict[str, Any]
    verdict: Verdict
    change: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """The episode as one entry of a result."""
        kept = {name: {key: getattr(self, name).get(key) for key in _CONSEQUENCES} for name in ("before", "after")}
        return {"episode_id": self.episode_id, **kept, "evidence": self.verdict.evidence.model_dump(mode="json")}


async def rescore(task: Task, row: dict[str, Any], states: Path, provider: SandboxProvider | None) -> Rescored:
    """Verify a stored episode's end state with ``task``'s verifier; the facts of how it ended stay.

    Raises:
        StoreError: its end state was not kept (``no_end_state``).
    """
    state = kept_end_state(states, str(row.get("sandbox", {}).get("end_state", "")))
    verdict = await verify(task, state, provider)
    scored = {"reward": verdict.reward, "rewards": verdict.rewards} if verdict.status == "scored" else {}
    facts = {name: fact for name, fact in row.get("facts", {}).items() if name != "control"}
    facts["verifier"] = {"status": verdict.status, "runs": 1, **scored, **verdict.facts}
    before, after = row["outcome"], classify(facts).model_dump(mode="json")
    change = None
    if any(before.get(key) != after[key] for key in ("outcome_class", "reward")):
        shown = [f"{one.get('outcome_class')}, reward {one.get('reward')}" for one in (before, after)]
        diff = f"{row.get('episode_id', '')}\n- {shown[0]}\n+ {shown[1]}"
        change = {"episode_id": row.get("episode_id", ""), "before": shown[0], "after": shown[1], "diff": diff}
    policy = row.get("policy", {})
    named = str(policy.get("model", policy) if isinstance(policy, dict) else policy)
    return Rescored(str(row.get("episode_id", "")), named, before, after, verdict, change)
