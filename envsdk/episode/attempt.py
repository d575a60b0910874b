"""One attempt at a task, under way: acting, looking at what is left, verifying; its facts survive an interruption.

`envsdk.episode.run` owns its life and writes the record; `envsdk.episode.steps` plays a task of several steps with it.
"""

from __future__ import annotations

import traceback
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

from envsdk.episode.aftermath import PLAIN_ENDS, full_disk, look, pristine_answers, recover, storage_free
from envsdk.episode.agents import Agent, AgentEnd, ToolUser, sandbox_failure
from envsdk.episode.box import Box, StartError, open_box
from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.controls import control_runs
from envsdk.episode.record import VerifierEvidence
from envsdk.episode.toolbox import Toolbox, open_toolbox
from envsdk.errors import EngineError, EnvsdkError, SandboxError
from envsdk.files.scratch import scratch
from envsdk.outcome import classify
from envsdk.sandboxes.base import Sandbox, SandboxProvider, Snapshot
from envsdk.spec.model import Task
from envsdk.verifying.artifacts import capture
from envsdk.verifying.store import keep_end_state
from envsdk.verifying.verdict import Artifacts, EndState, Verdict, declared_artifacts
from envsdk.verifying.verify import verify


class Attempt:
    """``facts`` are those of the outcome table; ``end`` is how acting ended, once it has."""

    def __init__(
        self,
        task: Task,
        agent: Agent,
        provider: SandboxProvider | None,
        clock: EpisodeClock,
        *,
        grading: AbstractAsyncContextManager[object] | None = None,
        keep: Path | None = None,
    ) -> None:
        self.task = task
        self.agent = agent
        self.provider = provider
        self.clock = clock
        declared = task.spec.verifier
        self._range = {"range": [declared.low, declared.high], "pass_mark": declared.success_at}
        not_run = {"status": "not_run", **self._range}
        self.facts: dict[str, Any] = {"phase": "acquire", "ended_by": "exception", "verifier": not_run}
        self.end: AgentEnd | None = None
        self.evidence = VerifierEvidence()
        self.sandbox: dict[str, str] = {}
        self.box: Box | None = None
        self._tools: Toolbox | None = None
        self._grading = nullcontext() if grading is None else grading
        self._keep = keep

    async def open(self, closing: AsyncExitStack, prepared: Snapshot | None) -> bool:
        """Make the box ready, where one is needed; false where that failed."""
        if self.provider is None or not (prepared or self.agent.needs_sandbox(self.task)):
            return True
        try:
            self.box = await open_box(self.task, self.provider, self.clock, closing, prepared=prepared)
        except StartError as error:
            note = f"task {self.task.slug}: {error}"[:500]
            self.facts |= {"phase": error.phase, "exception": {"kind": error.code, "note": note}, **full_disk(error)}
            return False
        if self._has_tools() and isinstance(self.agent, ToolUser):
            try:
                self._tools = await closing.enter_async_context(
                    open_toolbox(self.task, self.box.services, self.box.sandbox)
                )
            except EnvsdkError as error:
                note = f"task {self.task.slug}: {error}"[:500]
                self.facts |= {"phase": "setup", "exception": {"kind": error.code, "note": note}}
                return False
        box = self.box.sandbox
        self.sandbox = {"provider": self.provider.name, "id": box.id, "image": box.spec.image}
        describe = getattr(self.provider, "describe", None)
        if describe is not None:
            self.sandbox |= describe(box.spec.image)
        return True

    def _has_tools(self) -> bool:
        container = self.task.spec.container
        return container is not None and bool(container.mcp_servers)

    async def act(self, task: Task, closing: AsyncExitStack) -> Sandbox | None:
        """Let the agent act on ``task`` and look at what is left; the box to grade, started again where it died."""
        box = self.box.sandbox if self.box else None
        self.facts["phase"] = "agent"
        self.end = await self._guarded(task, box)
        self.facts |= {"ended_by": self.end.ended_by, "clocks": self.clock.facts(), **self.end.facts}
        if self.end.trace is not None:
            self.facts["tokens"] = {"complete": self.end.trace.complete}
        if box is None:
            return None
        self.facts |= await look(box, self.end.ended_by, self.provider)
        return await self._revive(box, closing)

    def is_the_models(self) -> bool:
        """The end so far is the model's, so that a verifier has a say; what the machinery ended is excluded anyway."""
        pretended = {**self._range, "status": "scored", "reward": self.task.spec.verifier.low}
        return classify(self.facts | {"verifier": pretended}).graded

    async def grade(self, task: Task, box: Sandbox | None) -> None:
        """Verify what was left; the verdict, and control runs where the verifier failed, become facts."""
        if self.facts["ended_by"] == "final_answer":
            self.facts["phase"] = "verify"  # any other end keeps the phase that it happened in
        if box is None and self.facts.get("sandbox", {}).get("state_recovered") is False:
            return
        self.clock.stamp("verify_start")
        async with self._grading:
            with scratch("end") as folder, self.clock.phase("verify"):
                await self._verdict(task, box, folder)
        self.clock.stamp("verified")

    async def _verdict(self, task: Task, box: Sandbox | None, folder: Path) -> None:
        state = await self._end_state(task, box, folder)
        if state is None:
            return
        verdict = await verify(task, state, self.provider)
        self.take(verdict)
        if self._keep is not None:
            self.sandbox["end_state"] = keep_end_state(state, self._keep)
        if verdict.status in {"error", "timeout"}:
            free = storage_free(self.provider)
            if free is not None:
                self.facts["disk"] = {**self.facts.get("disk", {}), "host_free_mib": free}
            control, runs = await control_runs(task, state, self.provider, verdict)
            self.facts["control"] = control
            self.facts["verifier"]["runs"] = runs

    def take(self, verdict: Verdict) -> None:
        """Record a verdict."""
        self.evidence = verdict.evidence
        scored = {"reward": verdict.reward, "rewards": verdict.rewards} if verdict.status == "scored" else {}
        self.facts["verifier"] = {**self._range, "status": verdict.status, "runs": 1, **scored, **verdict.facts}

    def cancelled(self) -> None:
        """The episode was cancelled from outside; a score that was there first stands."""
        if not self._is_scored():
            self.facts |= {"phase": self._phase(), "ended_by": "cancel"}

    def broke(self, error: Exception) -> None:
        """The harness itself failed."""
        note = "".join(traceback.format_exception(error, limit=-4))[-2000:]
        kind = error.code if isinstance(error, EnvsdkError) else type(error).__name__
        if not self._is_scored():
            self.facts |= {"phase": self._phase(), "ended_by": "exception"}
        self.facts |= {"exception": {"kind": kind, "note": note}, **full_disk(error)}

    def _is_scored(self) -> bool:
        return bool(self.facts["verifier"].get("status") == "scored")

    def _phase(self) -> str:
        return "verify" if "verify_start" in self.clock.stamps else str(self.facts["phase"])

    async def _guarded(self, task: Task, box: Sandbox | None) -> AgentEnd:
        with self.clock.acting():
            try:
                if self._tools is not None and isinstance(self.agent, ToolUser):
                    return await self.agent.act_with_tools(task, box, self.clock, self._tools)
                return await self.agent.act(task, box, self.clock)
            except SandboxError as error:
                ended_by, facts = sandbox_failure(error)
                return AgentEnd(ended_by, facts=facts)
            except EngineError as error:
                kind = f"inference_{error.code}"
                return AgentEnd("exception", facts={"exception": {"kind": kind, "note": str(error)[:500]}})

    async def _revive(self, box: Sandbox, closing: AsyncExitStack) -> Sandbox | None:
        """A dead box is started again from its file system; whether a fresh one answers is part of the facts."""
        seen = self.facts.get("sandbox", {})
        if self.facts["ended_by"] in PLAIN_ENDS or seen.get("alive", True) or self.provider is None:
            return box
        again = await recover(box, self.provider)
        seen["state_recovered"] = again is not None
        seen["pristine_ok"] = await pristine_answers(self.provider, box.spec)
        if again is not None:
            closing.push_async_callback(again.close)
        return again

    async def _end_state(self, task: Task, box: Sandbox | None, folder: Path) -> EndState | None:
        """What is left to grade, carried out of the box while it lives; `None` where it could not be carried."""
        artifacts: Artifacts | None = None
        if box is not None:
            try:
                await box.kill_agent_processes()
                artifacts = await capture(box, declared_artifacts(task.spec), folder)
            except SandboxError as error:
                evidence = VerifierEvidence(error_code="download_failed", message=str(error))
                self.take(
                    Verdict("error", code="download_failed", evidence=evidence, facts={"code": "download_failed"})
                )
                return None
        network = self.box.network if self.box else ""
        answer = self.end.answer if self.end else None
        return EndState(answer=answer, sandbox=box, artifacts=artifacts, network=network)
