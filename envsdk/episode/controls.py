"""Control runs: when a verifier failed, they decide between the verifier and this state (rule 5 of the outcome table).

The same verifier runs again on the same state, and on the pristine and the oracle's state. What came of the latter
two is kept per verifier for the life of the process, since neither depends on the episode.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from envsdk.episode.agents import Agent, NoopAgent, OracleAgent
from envsdk.episode.box import open_box
from envsdk.episode.clocks import EpisodeClock
from envsdk.errors import EnvsdkError
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.verdict import EndState, Verdict
from envsdk.verifying.verify import verify

_MACHINERY = frozenset({"upload_failed", "download_failed", "sandbox_lost"})
_KNOWN: dict[tuple[str, str, str], dict[str, Any] | None] = {}


async def control_runs(
    task: Task, state: EndState, provider: SandboxProvider | None, first: Verdict
) -> tuple[list[dict[str, Any]], int]:
    """Control facts, and how often the verifier ran on this very state under equal conditions and failed."""
    if first.code in _MACHINERY:
        return [], 1
    left = EndState(answer=state.answer, artifacts=state.artifacts, network=state.network)
    again = await verify(task, left, provider)
    is_elsewhere = task.spec.verifier.mode == "shared" and state.sandbox is not None
    controls = []
    runs = 1
    if is_elsewhere or again.status == "scored":
        controls.append(_fact("same_fresh_sandbox" if is_elsewhere else "same", again))
    else:
        runs = 2
    if again.status != "scored":
        for name in ("pristine", "oracle"):
            key = (task.digests.task, task.digests.verifier, name)
            if key not in _KNOWN:
                _KNOWN[key] = await _elsewhere(task, name, provider)
            known = _KNOWN[key]
            if known is not None:
                controls.append(known)
    return controls, runs


async def _elsewhere(task: Task, name: str, provider: SandboxProvider | None) -> dict[str, Any] | None:
    """The verifier's word on the pristine or the oracle's state; `None` where that state cannot be had."""
    agent: Agent = NoopAgent() if name == "pristine" else OracleAgent()
    if name == "oracle" and task.oracle is None:
        return None
    clock = EpisodeClock(task.spec.budget)
    async with AsyncExitStack() as closing:
        try:
            box = await open_box(task, provider, clock, closing) if provider and agent.needs_sandbox(task) else None
            sandbox, network = (box.sandbox, box.network) if box else (None, "")
            with clock.acting():
                end = await agent.act(task, sandbox, clock)
        except EnvsdkError:
            return None
        return _fact(name, await verify(task, EndState(answer=end.answer, sandbox=sandbox, network=network), provider))


def _fact(state: str, verdict: Verdict) -> dict[str, Any]:
    scored = {"reward": verdict.reward} if verdict.status == "scored" else {}
    return {"state": state, "status": verdict.status, **scored, "seconds": round(verdict.seconds, 3)}
