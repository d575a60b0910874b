"""Tokens in, tokens out: what a session appends, and what it says about each token."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.episode.record import PolicyId
from envsdk.errors import EngineError
from envsdk.policy import Message, Policy, Session
from tests.fakes.chat import FakeTokenizer
from tests.fakes.engine import END, FakeEngine, true_logprob
from trainer.engines.chat import ChatTokens
from trainer.engines.rotation import Rotation
from trainer.engines.token_policy import TokenPolicy

ASK = [Message(role="system", content="be brief"), Message(role="user", content="go")]


def policy_of(*engines: FakeEngine, **options) -> TokenPolicy:
    return TokenPolicy(Rotation(engines), ChatTokens(FakeTokenizer()), identity=PolicyId(model="fake"), **options)


def told(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


async def test_it_satisfies_the_policy_protocol() -> None:
    policy = policy_of(FakeEngine())
    assert isinstance(policy, Policy)
    assert isinstance(await policy.begin(session_id="a"), Session)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(3, 99), min_size=1, max_size=5), min_size=1, max_size=4), st.booleans())
async def test_the_context_of_a_turn_is_the_last_context_plus_what_was_generated_plus_new_tokens(replies, ends) -> None:
    pending = [[*reply, END] if ends else list(reply) for reply in replies]
    engine = FakeEngine(reply=lambda request: pending[len(engine.requests) - 1])
    session = await policy_of(engine).begin(session_id="a")
    await session.reply(ASK, max_tokens=99)
    for number in range(1, len(pending)):
        before = session.trace().ids
        await session.reply(told(f"turn {number}"), max_tokens=99)
        assert engine.requests[-1].prompt_ids[: len(before)] == before


async def test_the_separator_between_turns_is_that_of_a_full_render() -> None:
    engine = FakeEngine(reply=lambda request: (*map(ord, "yes"), END))
    session = await policy_of(engine).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await session.reply(told("more"), max_tokens=9)
    conversation = [*ASK, Message(role="assistant", content="yes"), *told("more")]
    assert engine.requests[-1].prompt_ids == tuple(ChatTokens(FakeTokenizer()).first_prompt(conversation))


async def test_an_unended_reply_gets_its_end_of_turn_from_us_without_loss() -> None:
    engine = FakeEngine(reply=lambda request: tuple(map(ord, "yes")))
    session = await policy_of(engine).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    length = len(session.trace().ids)
    await session.reply(told("more"), max_tokens=9)
    trace = session.trace()
    assert trace.ids[length] == END
    assert trace.loss_mask[length] == 0


async def test_only_generated_tokens_carry_loss_and_logprobs() -> None:
    session = await policy_of(FakeEngine()).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await session.reply(told("more"), max_tokens=9)
    trace = session.trace()
    generated = [token for token, mask in zip(trace.ids, trace.loss_mask, strict=True) if mask]
    assert generated == [11, 12, 13, END] * 2
    assert all((logprob == 0.0) == (mask == 0) for logprob, mask in zip(trace.logprobs, trace.loss_mask, strict=True))


async def test_a_logprob_is_that_of_the_token_at_its_own_position() -> None:
    session = await policy_of(FakeEngine()).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await session.reply(told("more"), max_tokens=9)
    trace = session.trace()
    for position, mask in enumerate(trace.loss_mask):
        if mask:
            assert trace.logprobs[position] == true_logprob(0, trace.ids[:position], trace.ids[position])


async def test_version_spans_cover_exactly_the_generated_tokens_across_an_update() -> None:
    engine = FakeEngine()
    session = await policy_of(engine).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await engine.pause()
    await engine.load(Path("w"), version=1)
    await engine.resume()
    await session.reply(told("more"), max_tokens=9)
    trace = session.trace()
    covered = {position: span.version for span in trace.versions for position in range(span.start, span.end)}
    assert set(covered) == {position for position, mask in enumerate(trace.loss_mask) if mask}
    assert set(covered.values()) == {0, 1}


async def test_no_turn_reuses_a_prefix_that_older_weights_computed() -> None:
    engine = FakeEngine()
    policy = policy_of(engine)
    session = await policy.begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await engine.pause()
    await engine.load(Path("w"), version=1)
    await engine.resume()
    await session.reply(told("more"), max_tokens=9)
    await (await policy.begin(session_id="b")).reply(ASK, max_tokens=9)
    assert engine.stale_hits == 0


async def test_siblings_and_later_turns_find_their_prefix() -> None:
    policy = policy_of(FakeEngine())
    first = await policy.begin(session_id="a", group_id="g")
    reply = await first.reply(ASK, max_tokens=9)
    sibling = await (await policy.begin(session_id="b", group_id="g")).reply(ASK, max_tokens=9)
    later = await first.reply(told("more"), max_tokens=9)
    assert reply.cached_prompt_tokens == 0
    assert sibling.cached_prompt_tokens == sibling.prompt_tokens - 1
    assert later.cached_prompt_tokens >= reply.prompt_tokens


async def test_a_full_context_is_said_without_asking_the_engine() -> None:
    engine = FakeEngine(max_model_len=10)
    session = await policy_of(engine).begin(session_id="a")
    reply = await session.reply(ASK, max_tokens=9)
    assert reply.finish == "context_full"
    assert engine.requests == []


async def test_a_reply_cut_by_the_end_of_the_context_says_so() -> None:
    prompt = len(ChatTokens(FakeTokenizer()).first_prompt(ASK))
    session = await policy_of(FakeEngine(max_model_len=prompt + 2)).begin(session_id="a")
    reply = await session.reply(ASK, max_tokens=9)
    assert (reply.finish, reply.generated_tokens) == ("context_full", 2)


async def test_a_reply_cut_by_its_own_budget_is_a_matter_of_length() -> None:
    session = await policy_of(FakeEngine()).begin(session_id="a")
    assert (await session.reply(ASK, max_tokens=2)).finish == "length"


async def test_an_engine_failure_is_raised_and_leaves_no_half_turn() -> None:
    engine = FakeEngine()
    session = await policy_of(engine).begin(session_id="a")
    engine.fail.add("generate")
    with pytest.raises(EngineError, match="500"):
        await session.reply(ASK, max_tokens=9)
    assert sum(session.trace().loss_mask) == 0


async def test_a_session_stays_on_its_replica() -> None:
    engines = FakeEngine("0"), FakeEngine("1")
    policy = policy_of(*engines)
    session = await policy.begin(session_id="a")
    for number in range(3):
        await session.reply(told(str(number)) if number else ASK, max_tokens=9)
    assert sorted(len(engine.requests) for engine in engines) == [0, 3]


async def test_a_seed_gives_every_turn_a_seed_of_its_own() -> None:
    engine = FakeEngine()
    session = await policy_of(engine).begin(session_id="a", seed=7)
    await session.reply(ASK, max_tokens=9)
    await session.reply(told("more"), max_tokens=9)
    assert len({request.seed for request in engine.requests}) == 2


async def test_a_watcher_hears_of_waiting_and_of_what_was_served() -> None:
    heard = []

    class Watcher:
        def generating(self, session_id):
            heard.append(("generating", session_id))

        def acting(self, session_id):
            heard.append(("acting", session_id))

        def served(self, *, prompt_tokens, cached_tokens, generated_tokens):
            heard.append((cached_tokens > 0, generated_tokens))

    session = await policy_of(FakeEngine(), watcher=Watcher()).begin(session_id="a")
    await session.reply(ASK, max_tokens=9)
    await session.reply(told("more"), max_tokens=9)
    assert heard == [("generating", "a"), ("acting", "a"), (False, 4), ("generating", "a"), ("acting", "a"), (True, 4)]
