"""The small model's own tokenizer and template: appended tokens are those of a full render."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.policy import Message
from trainer.engines.chat import ChatTokens
from trainer.engines.policy import load_tokenizer
from trainer.models import tiny_model_dir

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and transformers, while they are imported

SYSTEM = Message(role="system", content="You write one shell command and nothing else.")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(tiny_model_dir())


@pytest.fixture(scope="module")
def chat(tokenizer) -> ChatTokens:
    return ChatTokens(tokenizer)


def told(role: str, text: str) -> Message:
    return Message(role=role, content=text)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=3))
def test_a_conversation_built_by_appending_equals_its_full_render(chat, tokenizer, turns) -> None:
    messages = [SYSTEM, told("user", "start")]
    ids = chat.first_prompt(messages)
    for reply, observation in turns:
        ids += [*tokenizer.encode(reply, add_special_tokens=False), chat.end_of_turn]
        ids += chat.continuation([told("user", observation)], after=ids[-1])
        messages += [told("assistant", reply), told("user", observation)]
    plain = [{"role": message.role, "content": message.content} for message in messages]
    full = tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    assert ids == tokenizer.encode(full, add_special_tokens=False)


def test_an_unended_reply_is_ended_first(chat) -> None:
    ended = chat.continuation([told("user", "x")], after=chat.end_of_turn)
    assert chat.continuation([told("user", "x")], after=chat.end_of_turn + 1) == [chat.end_of_turn, *ended]


def test_the_first_prompt_ends_where_the_reply_begins(chat, tokenizer) -> None:
    assert tokenizer.decode(chat.first_prompt([SYSTEM, told("user", "go")])).endswith("assistant\n")
