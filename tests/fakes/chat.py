"""A fake tokenizer with a chat template: one token a character, two special ones."""

from __future__ import annotations

import re

from tests.fakes.engine import END

_START = 1
_SPECIAL = {"<s>": _START, "</s>": END}


class FakeTokenizer:
    """``<s>role\\ncontent</s>\\n`` for each message; the reply opens with ``<s>assistant\\n``."""

    eos_token_id = END
    chat_template = "fake"

    def apply_chat_template(self, messages, *, tokenize, add_generation_prompt):
        assert not tokenize
        text = "".join(f"<s>{message['role']}\n{message['content']}</s>\n" for message in messages)
        return text + "<s>assistant\n" if add_generation_prompt else text

    def encode(self, text, *, add_special_tokens):
        assert not add_special_tokens
        parts = re.split("(<s>|</s>)", text)
        return [token for part in parts for token in ([_SPECIAL[part]] if part in _SPECIAL else map(ord, part))]
