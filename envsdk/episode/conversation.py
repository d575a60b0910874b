"""The agent that is a policy: turns of generating and acting, by the task's protocol.

The session holds the conversation in tokens; only new messages are handed over, so that what was generated is trained
on as generated. Protocols: ``answer`` (one reply is the answer), ``command`` (one reply is one shell command, its
stdout the answer), ``shell`` (a command a turn, until the word ``done`` or a limit). Where the task has MCP servers,
a reply of ``shell`` may call one of their tools instead (`envsdk.episode.toolbox`).
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from typing import Any

from envsdk.episode.agents import (
    OBSERVATION_CAP_BYTES,
    OUTPUT_CAP_BYTES,
    AgentEnd,
    answers_only,
    command_fact,
    observe,
    sandbox_failure,
    store_answer,
)
from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.record import Turn
from envsdk.episode.toolbox import CALL, Toolbox
from envsdk.errors import EngineError, SandboxError
from envsdk.policy import InferenceError, Message, Policy, Reply, Session
from envsdk.sandboxes.base import Sandbox
from envsdk.spec.meaning import ANSWER_PATH
from envsdk.spec.model import Task
from envsdk.verifying.verdict import answer_path

EMPTY_TURNS = 3
DONE = "done"
_FENCE = re.compile(r"\A```[a-z]*\n(?P<command>.*?)\n?```\s*\Z", re.DOTALL)


class ConversationAgent:
    """Acts as a policy says.

    Args:
        policy: what generates.
        seed: of the session's sampling; `None` leaves it to the policy.
        group_id: siblings share it, and with it a prompt's prefix.
        session_id: names the session to the policy; a fresh one where absent.
    """

    def __init__(self, policy: Policy, seed: int | None = None, *, group_id: str = "", session_id: str = "") -> None:
        self.name = policy.id.model
        self.policy = policy.id
        self._policy = policy
        self._seed = seed
        self._group_id = group_id
        self._session_id = session_id

    def needs_sandbox(self, task: Task) -> bool:
        return not answers_only(task)

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:
        return await self.act_with_tools(task, sandbox, clock, Toolbox())

    async def act_with_tools(
        self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock, tools: Toolbox
    ) -> AgentEnd:
        session_id = self._session_id or uuid.uuid4().hex
        try:
            with clock.held_by("inference"):
                session = await self._policy.begin(session_id=session_id, group_id=self._group_id, seed=self._seed)
        except EngineError as error:
            return _engine_end(error, _Course(task, clock))
        try:
            return await _Conversation(task, sandbox, clock, session, tools).run()
        finally:
            await session.close()


class _Course:
    """What has happened so far in one conversation."""

    def __init__(self, task: Task, clock: EpisodeClock) -> None:
        self.task = task
        self.clock = clock
        self.turns: list[Turn] = []
        self.facts: dict[str, Any] = {}
        self.tokens = 0
        self.empty = 0
        self.misfits = 0

    def end(self, ended_by: str, session: Session | None = None, *, answer: bytes | None = None) -> AgentEnd:
        trace = session.trace() if session is not None else None
        return AgentEnd(ended_by, tuple(self.turns), answer=answer, facts=self.facts, trace=trace)


class _Conversation:
    """One conversation of a session with a task, from the first prompt to its end."""

    def __init__(
        self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock, session: Session, tools: Toolbox
    ) -> None:
        self._tools = tools
        self._task = task
        self._sandbox = sandbox
        self._clock = clock
        self._session = session
        self._course = _Course(task, clock)
        self._stdout = b""

    async def run(self) -> AgentEnd:
        try:
            return await self._turns()
        except EngineError as error:
            return _engine_end(error, self._course, self._session)
        except SandboxError as error:
            ended_by, facts = sandbox_failure(error)
            self._course.facts |= facts
            return self._course.end(ended_by, self._session)

    async def _turns(self) -> AgentEnd:
        messages = opening(self._task, self._tools.prompt())
        while True:
            reply, seconds = await self._reply(messages)
            if reply is None:
                return self._course.end("episode_deadline", self._session)
            self._course.tokens += reply.generated_tokens
            end = await self._take(reply, seconds)
            if end is not None:
                return end
            messages = (Message(role="user", content=self._course.turns[-1].observation),)

    async def _take(self, reply: Reply, seconds: float) -> AgentEnd | None:
        """What follows from one reply; `None` where the conversation goes on."""
        course, agent = self._course, self._task.spec.agent
        if reply.finish == "context_full":
            course.turns.append(_turn(reply, seconds))
            course.facts["inference"] = {"status": 400, "code": "context_length_exceeded"}
            return course.end("inference_reply", self._session)
        if agent.protocol == "answer":
            return await self._answer(reply, seconds)
        if agent.protocol == "shell" and self._tools.tools and (called := CALL.search(reply.text)):
            ended_by = await self._call(called["call"], reply, seconds) or self._limit()
            return course.end(ended_by, self._session) if ended_by else None
        command = command_of(reply.text)
        if agent.protocol == "command":
            return await self._single(command, reply, seconds)
        if command.rstrip(".!").lower() == DONE:
            course.turns.append(_turn(reply, seconds))
            return course.end("final_answer", self._session)
        ended_by = await self._act(command, reply, seconds) if command else self._skip(reply, seconds)
        ended_by = ended_by or self._limit()
        return course.end(ended_by, self._session) if ended_by else None

    def _limit(self) -> str:
        """The limit that ends the conversation after this turn, if one does."""
        budget = self._task.spec.budget
        if len(self._course.turns) >= budget.turns:
            return "turn_limit"
        return "token_limit" if self._course.tokens >= budget.episode_tokens else ""

    async def _reply(self, messages: tuple[Message, ...]) -> tuple[Reply | None, float]:
        """The next reply and its seconds; `None` where the episode's clock ran out first."""
        budget, left_s = self._task.spec.budget, self._clock.left_s()
        tokens = min(budget.reply_tokens, budget.episode_tokens - self._course.tokens)
        began, asked_at = time.monotonic(), self._clock.now()
        if left_s <= 0:
            return None, 0.0
        try:
            async with asyncio.timeout(left_s):
                reply = await self._session.reply(
                    messages, max_tokens=max(1, tokens), stop=self._task.spec.agent.stop, timeout_s=left_s
                )
        except TimeoutError:
            # No reply came: nobody but the engine kept the episode waiting.
            self._clock.hold("inference", time.monotonic() - began)
            return None, time.monotonic() - began
        seconds = time.monotonic() - began
        self._clock.generated(wall_s=seconds, queue_s=reply.queue_s, prefill_s=reply.prefill_s, decode_s=reply.decode_s)
        first_after_s = min(seconds, reply.queue_s + reply.prefill_s) if reply.decode_s else seconds
        self._clock.stamp("first_token", first_only=True, at=asked_at + first_after_s)
        self._clock.stamp("last_token")
        return reply, seconds

    async def _answer(self, reply: Reply, seconds: float) -> AgentEnd:
        answer = reply.text.encode("utf-8", "surrogatepass")
        self._course.turns.append(_turn(reply, seconds))
        await store_answer(self._task, self._sandbox, answer)
        ended_by = "token_limit" if reply.finish == "length" else "final_answer"
        return self._course.end(ended_by, self._session, answer=answer)

    async def _single(self, command: str, reply: Reply, seconds: float) -> AgentEnd:
        """The one command of protocol ``command``: what it prints is the answer."""
        if not command:
            self._course.turns.append(_turn(reply, seconds, observation="[no command]"))
            return self._course.end("final_answer", self._session, answer=b"")
        ended_by = await self._act(command, reply, seconds)
        if not ended_by:
            await self._store_stdout(self._stdout)
        return self._course.end(ended_by or "final_answer", self._session, answer=self._stdout)

    def _skip(self, reply: Reply, seconds: float) -> str:
        """A turn without a command; several in a row end the episode."""
        course = self._course
        course.empty += 1
        course.turns.append(_turn(reply, seconds, observation="[no command]"))
        if course.empty < EMPTY_TURNS:
            return ""
        course.facts["inference"] = {
            "status": 200,
            "choices": 1,
            "completion_tokens": max(1, reply.generated_tokens),
            "finish_reason": "stop",
            "attempts": course.empty,
        }
        return "inference_reply"

    async def _call(self, text: str, reply: Reply, seconds: float) -> str:
        """Do the call in a reply; what ended the episode, if that did: several in a row that fit no tool."""
        course = self._course
        course.empty = 0
        number = len(course.turns)
        self._clock.stamp(f"tool_start_{number}")
        with self._clock.held_by("tool"):
            try:
                async with asyncio.timeout(max(0.001, self._clock.left_s())):
                    came = await self._tools.call(text)
            except TimeoutError:
                came = None
        self._clock.stamp(f"tool_end_{number}")
        if came is None:
            course.turns.append(_turn(reply, seconds, observation="[the tool was stopped at the time limit]"))
            return "episode_deadline"
        how = "refused" if not came.is_fit else "failed" if came.failed else "done"
        shown = came.text[:OBSERVATION_CAP_BYTES]
        course.turns.append(_turn(reply, seconds, observation=f"{shown}\n[tool call {how}]"))
        course.misfits = 0 if came.is_fit else course.misfits + 1
        course.facts["tool_calls"] = {"unusable_in_a_row": course.misfits, "last_valid": came.is_fit}
        return "tool_call_errors" if course.misfits >= EMPTY_TURNS else ""

    async def _act(self, command: str, reply: Reply, seconds: float) -> str:
        """Run a reply's command. Returns what ended the episode, if that did."""
        if self._sandbox is None:
            raise SandboxError("the task's protocol runs commands and there is no sandbox", code="needs_sandbox")
        course, budget = self._course, self._task.spec.budget
        course.empty = 0
        step_s = min(budget.step_s, max(0.001, self._clock.left_s()))
        number = len(course.turns)
        self._clock.stamp(f"tool_start_{number}")
        with self._clock.held_by("tool"):
            result = await self._sandbox.exec(command, timeout_s=step_s, output_cap_bytes=OUTPUT_CAP_BYTES)
        self._clock.stamp(f"tool_end_{number}")
        shown = observe(result)
        course.turns.append(_turn(reply, seconds, observation=shown, exit_code=result.exit_code, act_s=result.seconds))
        course.facts["command"] = command_fact(command, result, step_s)
        self._stdout = result.stdout
        if result.channel_lost:
            return "channel_lost"
        if result.timed_out:
            return "step_deadline" if step_s >= budget.step_s else "episode_deadline"
        return ""

    async def _store_stdout(self, stdout: bytes) -> None:
        """Store a single command's stdout as the answer, unless the command left the artifact or barred its place."""
        assert self._sandbox is not None
        path = answer_path(self._task.spec)
        if path != ANSWER_PATH:
            try:
                await self._sandbox.read(path, max_bytes=1)
            except SandboxError as error:
                if error.code != "no_such_file":
                    return
            else:
                return
        try:
            await store_answer(self._task, self._sandbox, stdout)
        except SandboxError as error:
            if error.code in {"channel_lost", "disk_full"}:
                raise


def opening(task: Task, tools: str = "") -> tuple[Message, ...]:
    """The messages before the first reply: system prompt with what is said of tools, worked examples, instruction."""
    agent = task.spec.agent
    told = "\n\n".join(filter(None, (agent.system, tools)))
    system = (Message(role="system", content=told),) if told else ()
    shots = tuple(
        message
        for example in agent.examples
        for message in (
            Message(role="user", content=example.user),
            Message(role="assistant", content=example.assistant),
        )
    )
    return (*system, *shots, Message(role="user", content=task.spec.instruction))


def command_of(text: str) -> str:
    """The shell command in a reply: the text itself, out of its code fence where it is nothing but one."""
    stripped = text.strip()
    fenced = _FENCE.match(stripped)
    return fenced["command"].strip() if fenced else stripped


def _turn(
    reply: Reply, seconds: float, *, observation: str = "", exit_code: int | None = None, act_s: float = 0.0
) -> Turn:
    return Turn(
        reply=reply.text,
        observation=observation,
        finish=reply.finish,
        exit_code=exit_code,
        generated_tokens=reply.generated_tokens,
        weight_version=reply.weight_version,
        generate_s=round(seconds, 6),
        act_s=round(act_s, 6),
    )


def _engine_end(error: EngineError, course: _Course, session: Session | None = None) -> AgentEnd:
    if isinstance(error, InferenceError) and error.inference.get("status") is not None:
        course.facts["inference"] = dict(error.inference)
        return course.end("inference_reply", session)
    course.facts["exception"] = {"kind": f"inference_{error.code}", "note": error.message[:300]}
    if isinstance(error, InferenceError):
        course.facts["inference"] = dict(error.inference)
    return course.end("exception", session)
