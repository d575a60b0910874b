"""The policy behind a chat URL, against a server on a local port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.run import run_episode
from envsdk.errors import UsageError
from envsdk.policies.openai import Answer, open_policy, read_reply
from envsdk.policy import InferenceError, Message, Policy
from tests.fakes.http_chat import chat_server, said
from tests.fakes.tasks import text_task

FULL = (
    400,
    {"error": {"code": None, "message": "This model's maximum context length is 512 tokens", "type": "BadRequest"}},
)


async def test_a_reply_carries_text_finish_and_tokens() -> None:
    with chat_server(said("hi", tokens=2, finish="length")) as server:
        policy = open_policy(f"{server.url}#tiny", temperature=0.5)
        session = await policy.begin(session_id="s1", seed=7)
        reply = await session.reply([Message(role="user", content="hello")], max_tokens=9, stop=["\n"])
        await policy.close()
    assert (reply.text, reply.finish, reply.generated_tokens, reply.prompt_tokens) == ("hi", "length", 2, 9)
    sent = server.requests[0]
    assert (sent["path"], sent["model"], sent["max_tokens"], sent["stop"]) == (
        "/v1/chat/completions",
        "tiny",
        9,
        ["\n"],
    )
    assert (sent["seed"], sent["temperature"], sent["user"]) == (7, 0.5, "s1")
    assert isinstance(policy, Policy)


async def test_the_history_is_sent_along_although_only_new_messages_are_given() -> None:
    with chat_server(said("one"), said("two")) as server:
        policy = open_policy(f"{server.url}#tiny")
        session = await policy.begin(session_id="s")
        for text in ("a", "b"):
            await session.reply([Message(role="user", content=text)], max_tokens=5)
        await policy.close()
    assert [message["content"] for message in server.requests[1]["messages"]] == ["a", "one", "b"]


async def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsdk.policies.openai.time.sleep", lambda _: None)
    with chat_server((503, {}), (429, {}), said("at last")) as server:
        policy = open_policy(f"{server.url}#tiny")
        session = await policy.begin(session_id="s")
        assert (await session.reply([Message(role="user", content="a")], max_tokens=5)).text == "at last"
        await policy.close()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "outcome_class", "cause"),
    [
        (said("5"), "model_success", "finished"),
        (said("6"), "model_failure", "finished"),
        (said("5", finish="length"), "model_success", "token_limit"),
        (FULL, "model_failure", "context_full"),
        ((400, {"error": {"code": "context_length_exceeded"}}), "model_failure", "context_full"),
        ((400, {"error": {"code": "bad_schema", "message": "no"}}), "infra_failure", "inference_error"),
        ((500, {"error": "boom"}), "infra_failure", "inference_error"),
        ((500, b"<html>"), "infra_failure", "inference_error"),
        ((200, {"choices": []}), "infra_failure", "inference_empty"),
        ((200, b"not json"), "infra_failure", "inference_empty"),
        (said("", tokens=0), "infra_failure", "inference_empty"),
        (said("x", finish="abort"), "infra_failure", "inference_error"),
    ],
)
async def test_whose_failure_it_was_follows_from_the_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, outcome_class: str, cause: str
) -> None:
    monkeypatch.setattr("envsdk.policies.openai.time.sleep", lambda _: None)
    with chat_server(answer) as server:
        policy = open_policy(f"{server.url}#tiny")
        record = await run_episode(text_task(tmp_path), ConversationAgent(policy), None)
        await policy.close()
    assert (record.outcome.outcome_class, record.outcome.cause) == (outcome_class, cause), record.facts


async def test_a_server_that_is_not_there_is_the_machinerys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsdk.policies.openai.time.sleep", lambda _: None)
    with chat_server(said("5")) as server:
        url = server.url
    policy = open_policy(f"{url}#tiny", attempts=2)
    record = await run_episode(text_task(tmp_path), ConversationAgent(policy), None)
    await policy.close()
    assert (record.outcome.outcome_class, record.outcome.cause) == ("infra_failure", "inference_error")
    assert record.facts["inference"]["attempts"] == 2


def test_the_only_model_of_a_server_needs_no_name() -> None:
    with chat_server(said("x"), models=["one"]) as server:
        assert open_policy(server.url).id.model == "one"


def test_a_server_with_several_models_asks_which() -> None:
    with chat_server(said("x"), models=["one", "two"]) as server, pytest.raises(UsageError) as caught:
        open_policy(server.url)
    assert caught.value.code == "which_model"
    assert "two" in caught.value.hint


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        open_policy("localhost:8000")
    assert caught.value.code == "bad_url"


async def test_the_key_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with chat_server(said("x")) as server:
        policy = open_policy(f"{server.url}#tiny")
        await (await policy.begin(session_id="s")).reply([Message(role="user", content="a")], max_tokens=1)
        await policy.close()
    assert server.requests[0]["key"] == "Bearer k"


def test_content_that_is_no_text_is_an_empty_turn_not_a_crash() -> None:
    body = {"choices": [{"message": {"content": None}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
    assert read_reply(Answer(200, body), 1).text == ""


def test_an_unusable_usage_is_not_observed() -> None:
    body = {"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": "many"}}
    assert read_reply(Answer(200, body), 1).generated_tokens == 0


def test_errors_name_the_server() -> None:
    with pytest.raises(InferenceError) as caught:
        read_reply(Answer(500, {}, "boom"), 4, where="http://x")
    assert caught.value.where == "http://x"
    assert caught.value.inference == {"attempts": 4, "status": 500}
