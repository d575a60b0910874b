"""A policy behind any OpenAI-compatible chat URL: ``openai:http://host:8000/v1#MODEL``.

Good for running and evaluating; not for training, since a chat API gives no tokens of its own and re-renders the
history each turn (`Session.trace` is `None`). A failure of the server is an `InferenceError` with the facts of the
exchange, never an empty reply. Busy and broken servers are asked again a few times; the wait is within the caller's
timeout.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from envsdk.episode.record import PolicyId, TokenTrace
from envsdk.errors import UsageError
from envsdk.policy import Finish, InferenceError, Message, Reply

TIMEOUT_S = 600.0
_RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
_FINISHES: dict[str, Finish] = {"stop": "stop", "eos": "stop", "length": "length"}
_REPLY_CAP_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer: ``status`` is `None` where the connection failed."""

    status: int | None
    body: dict[str, Any]
    error: str = ""
    retry_after_s: float = 0.0


def open_policy(
    rest: str,
    *,
    model: str = "",
    temperature: float = 1.0,
    top_p: float = 1.0,
    attempts: int = 4,
    concurrency: int = 64,
) -> OpenAIPolicy:
    """A policy for ``URL`` or ``URL#MODEL``. The key is taken from ``OPENAI_API_KEY``, where the server wants one.

    Raises:
        UsageError: the URL is none (``bad_url``), or no model is named and the server does not serve exactly one
            (``which_model``).
        InferenceError: the server does not answer when asked for its models.
    """
    url, _, named = rest.partition("#")
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{rest!r} is no URL", code="bad_url", hint="openai:http://host:8000/v1#MODEL", where="policy")
    wire = _Wire(url.rstrip("/"), os.environ.get("OPENAI_API_KEY", ""), attempts)
    sampling = {"temperature": temperature, "top_p": top_p}
    return OpenAIPolicy(wire, model or named or _only_model(wire), sampling, concurrency)


class OpenAIPolicy:
    """Implements `envsdk.policy.Policy` over a chat URL."""

    def __init__(self, wire: _Wire, model: str, sampling: dict[str, float], concurrency: int) -> None:
        self.id = PolicyId(model=model, lineage=model, engine=wire.url, sampling=dict(sampling))
        self._wire = wire
        self._sampling = sampling
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="envsdk-openai")

    async def begin(
        self,
        *,
        session_id: str,
        group_id: str = "",  # noqa: ARG002 - the server finds shared prefixes by itself
        seed: int | None = None,
    ) -> OpenAISession:
        """A new conversation; ``session_id`` goes along as ``user``, which sticky routers read."""
        fixed: dict[str, Any] = {"model": self.id.model, "user": session_id, **self._sampling}
        return OpenAISession(self._wire, self._threads, fixed if seed is None else {**fixed, "seed": seed})

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class OpenAISession:
    """One conversation; the API holds none, so the history is sent each time."""

    def __init__(self, wire: _Wire, threads: ThreadPoolExecutor, fixed: dict[str, Any]) -> None:
        self._wire = wire
        self._threads = threads
        self._fixed = fixed
        self._messages: list[dict[str, str]] = []

    async def reply(
        self,
        new_messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        self._messages += [message.model_dump() for message in new_messages]
        request = {**self._fixed, "messages": self._messages, "max_tokens": max_tokens}
        if stop:
            request["stop"] = list(stop)
        loop = asyncio.get_running_loop()
        answer, attempts = await loop.run_in_executor(
            self._threads, self._wire.ask, "/chat/completions", request, timeout_s or TIMEOUT_S
        )
        reply = read_reply(answer, attempts, where=self._wire.url)
        self._messages.append({"role": "assistant", "content": reply.text})
        return reply

    def trace(self) -> TokenTrace | None:
        return None

    async def close(self) -> None:
        self._messages.clear()


def read_reply(answer: Answer, attempts: int, *, where: str = "") -> Reply:
    """The reply in a server's answer.

    Raises:
        InferenceError: it is an error, or holds no generated turn; ``inference`` has the facts.
    """
    facts: dict[str, Any] = {"attempts": attempts}
    if answer.status is None:
        hint = "check the URL and that the server runs"
        raise InferenceError(
            f"no answer: {answer.error}", inference=facts, code="connection_failed", where=where, hint=hint
        )
    facts["status"] = answer.status
    if answer.status != 200:
        code = _error_code(answer)
        if code:
            facts["code"] = code
        if code == "context_length_exceeded":
            return Reply(text="", finish="context_full")
        raise InferenceError(f"status {answer.status}: {answer.error[:300]}", inference=facts, where=where)
    choices = answer.body.get("choices")
    choices = choices if isinstance(choices, list) else []
    counted = answer.body.get("usage")
    usage: dict[str, Any] = counted if isinstance(counted, dict) else {}
    facts |= {"choices": len(choices), **_integers(completion_tokens=usage.get("completion_tokens"))}
    if not choices or not isinstance(choices[0], dict) or facts.get("completion_tokens") == 0:
        raise InferenceError(
            "a good status without any generated token",
            inference=facts,
            code="empty_reply",
            where=where,
            hint="look at the server's log: it answered before it generated anything",
        )
    reason = str(choices[0].get("finish_reason") or "stop")
    if reason not in _FINISHES:
        facts["finish_reason"] = "abort"
        raise InferenceError(
            f"the server broke off: {reason}",
            inference=facts,
            code="reply_aborted",
            where=where,
            hint="look at the server's log: it says why it ended the reply",
        )
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else ""
    return Reply(
        text=text if isinstance(text, str) else "",
        finish=_FINISHES[reason],
        generated_tokens=facts.get("completion_tokens", 0),
        prompt_tokens=_integers(n=usage.get("prompt_tokens")).get("n", 0),
    )


class _Wire:
    """Blocking HTTP with retries; used from the policy's threads."""

    def __init__(self, url: str, key: str, attempts: int) -> None:
        self.url = url
        self._attempts = max(1, attempts)
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def ask(self, path: str, request: dict[str, Any] | None, timeout_s: float) -> tuple[Answer, int]:
        """The last answer within ``timeout_s`` and how many were asked for."""
        deadline = time.monotonic() + timeout_s
        for attempt in range(1, self._attempts + 1):
            answer = self._once(path, request, max(0.1, deadline - time.monotonic()))
            pause = max(answer.retry_after_s, 0.25 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            is_final = answer.status is not None and answer.status not in _RETRIED
            if is_final or attempt == self._attempts or time.monotonic() + pause >= deadline:
                return answer, attempt
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(self, path: str, request: dict[str, Any] | None, timeout_s: float) -> Answer:
        data = None if request is None else json.dumps(request).encode()
        wanted = urllib.request.Request(self.url + path, data=data, headers=self._headers)  # noqa: S310 - http(s) only
        try:
            with urllib.request.urlopen(wanted, timeout=timeout_s) as response:  # noqa: S310
                return Answer(response.status, _json(response.read(_REPLY_CAP_BYTES)))
        except urllib.error.HTTPError as error:
            with error:
                body = error.read(1 << 16)
                after = error.headers.get("Retry-After", "")
            pause = min(float(after), 30.0) if after.isdecimal() else 0.0
            return Answer(error.code, _json(body), body.decode("utf-8", "replace"), pause)
        except (OSError, ValueError) as error:
            return Answer(None, {}, str(error))


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _error_code(answer: Answer) -> str:
    error = answer.body.get("error", answer.body)
    error = error if isinstance(error, dict) else {"message": str(error)}
    code = error.get("code")
    # Servers name it differently; the words are the server's own, not the model's.
    about_length = "context length" in str(error.get("message", "")).lower() or code == "context_length_exceeded"
    if about_length and answer.status in {400, 413, 422}:
        return "context_length_exceeded"
    return code if isinstance(code, str) else str(error.get("type") or "")


def _integers(**values: Any) -> dict[str, int]:
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _only_model(wire: _Wire) -> str:
    answer, attempts = wire.ask("/models", None, 30.0)
    if answer.status != 200:
        raise InferenceError(
            f"the server does not list its models: {answer.error[:200]}",
            inference={"attempts": attempts},
            hint="name the model: openai:URL#MODEL",
            where=wire.url,
        )
    names = [str(entry["id"]) for entry in answer.body.get("data", []) if isinstance(entry, dict) and "id" in entry]
    if len(names) != 1:
        raise UsageError(
            f"the server has {len(names)} models",
            code="which_model",
            hint=f"openai:URL#MODEL, of {names[:8]}",
            where=wire.url,
        )
    return names[0]
