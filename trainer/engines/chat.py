"""From messages to tokens, appending only: what the engine has seen is never rendered or tokenised again.

`first_prompt` renders the whole template once. `continuation` gives the tokens that the template puts between a reply
and the next one: the end of the reply's turn, the new messages, the opening of the next reply. It is found by rendering
a stand-in conversation around a marker, so no model's template is written down here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envsdk.errors import EngineError
from envsdk.policy import Message

_MARKER = "\N{WHITE SQUARE}reply\N{WHITE SQUARE}"


class ChatTokens:
    """A tokenizer with a chat template, as a source of tokens to append."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        end = tokenizer.eos_token_id
        if end is None or not tokenizer.chat_template:
            raise EngineError(
                "the model has no chat template or no end-of-turn token",
                code="no_chat_template",
                hint="give a model that was tuned for chat, or add both to its tokenizer",
            )
        self.end_of_turn: int = int(end)

    def first_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a conversation's start, up to where the model's reply begins."""
        return self._encode(self._render([_plain(message) for message in messages]))

    def plain(self, text: str) -> list[int]:
        """Tokens of a text outside any conversation."""
        return self._encode(text)

    def continuation(self, messages: Sequence[Message], *, after: int) -> list[int]:
        """Tokens from the end of a reply to the start of the next.

        Args:
            messages: what comes between, the environment's words.
            after: the reply's last token; where it ended its turn itself, that token is not repeated.
        """
        before = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARKER}]
        text = self._render([*before, *(_plain(message) for message in messages)])
        ids = self._encode(text[text.index(_MARKER) + len(_MARKER) :])
        if ids[:1] == [self.end_of_turn] and after == self.end_of_turn:
            return ids[1:]
        return ids

    def _render(self, messages: list[dict[str, str]]) -> str:
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _encode(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]


def _plain(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}
