"""Run one episode: box, acting, verifying, outcome, record.

`run_episode` never raises for what happens inside an episode: whatever ends it becomes facts, and the outcome table
says what follows. Cancelling it ends the episode, closes its sandboxes and still returns the record, so that every
dispatched episode ends exactly once; a second cancel, while that is under way, is raised.

    dispatched -> [build, acquire, set-up] -> acting -> look at what is left -> verify -> classify -> record
"""

from __future__ import annotations

import asyncio
import tempfile
import traceback
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from envsdk.episode.aftermath import PLAIN_ENDS, look, pristine_answers, recover
from envsdk.episode.agents import Agent, AgentEnd
from envsdk.episode.box import StartError, open_box
from envsdk.episode.clocks import EpisodeClock, OnStamp
from envsdk.episode.controls import control_runs
from envsdk.episode.record import EpisodeRecord, VerifierEvidence
from envsdk.errors import EngineError, EnvsdkError, SandboxError
from envsdk.outcome import classify
from envsdk.sandboxes.base import Sandbox, SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.artifacts import capture
from envsdk.verifying.store import keep_end_state
from envsdk.verifying.verdict import Artifacts, EndState, Verdict, declared_artifacts
from envsdk.verifying.verify import verify


async def run_episode(
    task: Task,
    agent: Agent,
    provider: SandboxProvider | None,
    *,
    episode_id: str | None = None,
    group_id: str = "",
    index_in_group: int = 0,
    attempt: int = 0,
    on_stamp: OnStamp | None = None,
    prepared: Sandbox | None = None,
    keep: Path | None = None,
) -> EpisodeRecord:
    """Let ``agent`` attempt ``task`` once.

    Args:
        task: what to attempt.
        agent: who acts.
        provider: where sandboxes come from; `None` is enough for tasks that need none.
        episode_id: idempotency key; a fresh one where absent.
        group_id: the group this episode belongs to.
        index_in_group: its place in the group.
        attempt: how often this place was dispatched before.
        on_stamp: hears each stamp (name, seconds after dispatch).
        prepared: a box that is ready (a sibling's fork); closed at the end like any other.
        keep: a folder to keep the end state in, for `envsdk score`; the record names it by digest.
    """
    clock = EpisodeClock(task.spec.budget, on_stamp=on_stamp)
    clock.stamp("dispatched")
    episode = _Episode(task, agent, provider, clock, keep)
    closing = AsyncExitStack()
    try:
        await episode.go(closing, prepared)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()
        episode.cancelled()
    except Exception as error:  # noqa: BLE001 - a defect of the harness ends this episode, not the run
        episode.broke(error)
    try:
        await closing.aclose()
    except EnvsdkError as error:
        episode.sandbox["close_error"] = error.code
    outcome = classify(episode.facts)
    trace = episode.end.trace if episode.end else None
    versions = [span.version for span in trace.versions] if trace else []
    return EpisodeRecord(
        episode_id=episode_id or uuid.uuid4().hex,
        slug=task.slug,
        task_digest=task.digests.task,
        verifier_digest=task.digests.verifier,
        family=task.spec.family,
        level=task.spec.level,
        group_id=group_id,
        index_in_group=index_in_group,
        attempt=attempt,
        policy=agent.policy,
        weight_version_oldest=min(versions, default=None),
        weight_version_newest=max(versions, default=None),
        outcome=outcome,
        facts=episode.facts,
        turns=episode.end.turns if episode.end else (),
        tokens=trace,
        times=clock.times(),
        stamps=clock.stamps,
        evidence=episode.evidence,
        sandbox=episode.sandbox,
        started_at=clock.started_at,
    )


class _Episode:
    """One episode under way: facts are gathered here, whatever interrupts it."""

    def __init__(
        self, task: Task, agent: Agent, provider: SandboxProvider | None, clock: EpisodeClock, keep: Path | None
    ) -> None:
        self.task = task
        self.agent = agent
        self.provider = provider
        self.clock = clock
        self.keep = keep
        self.facts: dict[str, Any] = {"phase": "acquire", "ended_by": "exception", "verifier": {"status": "not_run"}}
        self.end: AgentEnd | None = None
        self.evidence = VerifierEvidence()
        self.sandbox: dict[str, str] = {}

    async def go(self, closing: AsyncExitStack, prepared: Sandbox | None) -> None:
        box, network = await self._box(closing, prepared)
        if self.facts.get("exception"):
            return
        self.facts["phase"] = "agent"
        self.end = await self._act(box)
        self.facts |= {"ended_by": self.end.ended_by, "clocks": self.clock.facts(), **self.end.facts}
        if self.end.trace is not None:
            self.facts["tokens"] = {"complete": self.end.trace.complete}
        if box is not None:
            self.facts |= await look(box, self.end.ended_by)
            box = await self._revive(box, closing)
        # Who ended it is decided without a verifier; an end of the machinery's is excluded whatever one would say.
        if classify(self.facts | {"verifier": {"status": "scored", "reward": self.task.spec.verifier.low}}).graded:
            await self._verify(box, network)

    async def _box(self, closing: AsyncExitStack, prepared: Sandbox | None) -> tuple[Sandbox | None, str]:
        if self.provider is None or not (prepared or self.agent.needs_sandbox(self.task)):
            return None, ""
        try:
            box, network = await open_box(self.task, self.provider, self.clock, closing, prepared=prepared)
        except StartError as error:
            self.facts |= {"phase": error.phase, "exception": {"kind": error.code, "note": str(error)[:500]}}
            return None, ""
        self.sandbox = {"provider": self.provider.name, "id": box.id, "image": box.spec.image}
        describe = getattr(self.provider, "describe", None)
        if describe is not None:
            self.sandbox |= describe(box.spec.image)
        return box, network

    async def _act(self, box: Sandbox | None) -> AgentEnd:
        with self.clock.acting():
            try:
                return await self.agent.act(self.task, box, self.clock)
            except SandboxError as error:
                kind = "no_space_left" if error.code == "disk_full" else error.code
                ended_by = "channel_lost" if error.code == "channel_lost" else "exception"
                return AgentEnd(ended_by, facts={"exception": {"kind": kind, "note": str(error)[:500]}})
            except EngineError as error:
                return AgentEnd(
                    "exception", facts={"exception": {"kind": f"inference_{error.code}", "note": str(error)[:500]}}
                )

    async def _revive(self, box: Sandbox, closing: AsyncExitStack) -> Sandbox | None:
        """A dead box is started again from its file system; whether a fresh one answers is part of the facts."""
        seen = self.facts.get("sandbox", {})
        if self.end is None or self.end.ended_by in PLAIN_ENDS or seen.get("alive", True) or self.provider is None:
            return box
        again = await recover(box, self.provider)
        seen["state_recovered"] = again is not None
        seen["pristine_ok"] = await pristine_answers(self.provider, box.spec)
        if again is not None:
            closing.push_async_callback(again.close)
        return again

    async def _verify(self, box: Sandbox | None, network: str) -> None:
        if self.facts["ended_by"] == "final_answer":
            self.facts["phase"] = "verify"  # any other end keeps the phase that it happened in
        if box is None and self.facts.get("sandbox", {}).get("state_recovered") is False:
            return
        self.clock.stamp("verify_start")
        with tempfile.TemporaryDirectory(prefix="envsdk-end-") as folder, self.clock.phase("verify"):
            state = await self._end_state(box, network, Path(folder))
            if state is not None:
                verdict = await verify(self.task, state, self.provider)
                if self.keep is not None:
                    self.sandbox["end_state"] = keep_end_state(state, self.keep)
                await self._take(verdict, state)
        self.clock.stamp("verified")

    async def _end_state(self, box: Sandbox | None, network: str, folder: Path) -> EndState | None:
        """What is left to grade, carried out of the box while it lives; `None` where it could not be carried."""
        answer = self.end.answer if self.end else None
        artifacts: Artifacts | None = None
        if box is not None:
            try:
                await box.kill_agent_processes()
                artifacts = await capture(box, declared_artifacts(self.task.spec), folder)
            except SandboxError as error:
                self._record(Verdict("error", code="download_failed", facts={"code": "download_failed"}))
                self.evidence = VerifierEvidence(error_code="download_failed", message=str(error))
                return None
        return EndState(answer=answer, sandbox=box, artifacts=artifacts, network=network)

    async def _take(self, verdict: Verdict, state: EndState) -> None:
        self._record(verdict)
        if verdict.status in {"error", "timeout"}:
            control, runs = await control_runs(self.task, state, self.provider, verdict)
            self.facts["control"] = control
            self.facts["verifier"]["runs"] = runs

    def _record(self, verdict: Verdict) -> None:
        self.evidence = verdict.evidence
        scored = {"reward": verdict.reward, "rewards": verdict.rewards} if verdict.status == "scored" else {}
        self.facts["verifier"] = {"status": verdict.status, "runs": 1, **scored, **verdict.facts}

    def cancelled(self) -> None:
        """The episode was cancelled from outside; a score that was there first stands."""
        if not self._is_over():
            self.facts |= {"phase": self._phase(), "ended_by": "cancel"}

    def broke(self, error: Exception) -> None:
        """The harness itself failed."""
        note = "".join(traceback.format_exception(error, limit=-4))[-2000:]
        kind = type(error).__name__ if not isinstance(error, EnvsdkError) else error.code
        if not self._is_over():
            self.facts |= {"phase": self._phase(), "ended_by": "exception"}
        self.facts["exception"] = {"kind": kind, "note": note}

    def _is_over(self) -> bool:
        return bool(self.facts["verifier"].get("status") == "scored")

    def _phase(self) -> str:
        return "verify" if "verify_start" in self.clock.stamps else str(self.facts["phase"])
