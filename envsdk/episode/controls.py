"""Control runs: when a verifier failed, they decide between the verifier and this state (rule 5 of the outcome table).

The same verifier runs again on the same state, and on the pristine and the oracle's state. What came of the latter
two is kept per verifier for the life of the process, since neither depends on the episode.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from weakref import WeakKeyDictionary

from envsdk.episode.agents import Agent, NoopAgent, OracleAgent
from envsdk.episode.box import open_box
from envsdk.episode.clocks import EpisodeClock
from envsdk.errors import EnvsdkError
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.verdict import EndState, Verdict
from envsdk.verifying.verify import verify

_MACHINERY = frozenset({"upload_failed", "download_failed", "sandbox_lost"})
_Key = tuple[str, str, str]
_KNOWN: dict[_Key, dict[str, Any]] = {}
_ASKED: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, asyncio.Future[dict[str, Any] | None]]] = (
    WeakKeyDictionary()
)


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
            known = await _known(task, name, provider)
            if known is not None:
                controls.append(known)
    return controls, runs


async def _known(task: Task, name: str, provider: SandboxProvider | None) -> dict[str, Any] | None:
    """What the verifier says of the pristine or the oracle's state: asked once, however many episodes want to know."""
    key = (task.digests.task, task.digests.verifier, name)
    if key in _KNOWN:
        return _KNOWN[key]
    asked = _ASKED.setdefault(asyncio.get_running_loop(), {})
    if key not in asked:
        asked[key] = asyncio.ensure_future(_elsewhere(task, name, provider))
        asked[key].add_done_callback(lambda _: asked.pop(key, None))
    # Shielded: one waiter that is cancelled must not take the answer from the others.
    fact = await asyncio.shield(asked[key])
    if fact is not None:
        _KNOWN[key] = fact
    return fact


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
        verdict = await verify(task, EndState(answer=end.answer, sandbox=sandbox, network=network), provider)
        return None if verdict.code in _MACHINERY else _fact(name, verdict)


def _fact(state: str, verdict: Verdict) -> dict[str, Any]:
    scored = {"reward": verdict.reward} if verdict.status == "scored" else {}
    return {"state": state, "status": verdict.status, **scored, "seconds": round(verdict.seconds, 3)}
