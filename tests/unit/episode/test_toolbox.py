"""Tools without a server: what the model is told, which replies call, and what is said of calls that do not fit."""

from typing import Any

import pytest

from envsdk.episode.toolbox import CALL, Tool, Toolbox

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def toolbox() -> Toolbox:
    unused: Any = None
    return Toolbox({"add": Tool("add", "Adds.", SCHEMA, unused, "add")})


def test_a_box_without_tools_says_nothing() -> None:
    assert Toolbox().prompt() == ""


def test_the_prompt_names_each_tool_its_arguments_and_how_to_call() -> None:
    told = toolbox().prompt()
    assert '"name": "add"' in told
    assert '"required": ["n"]' in told
    assert "<tool_call>" in told


@pytest.mark.parametrize(
    ("reply", "inside"),
    [
        ('<tool_call>{"name": "a"}</tool_call>', '{"name": "a"}'),
        ('so:\n<tool_call>\n{"name": "a"}\n</tool_call> and', '\n{"name": "a"}\n'),
        ('<tool_call>{"name": "a"}', '{"name": "a"}'),
        ("ls <tool>", None),
    ],
)
def test_a_reply_calls_where_it_says_so_also_cut_at_a_stop_word(reply: str, inside: str | None) -> None:
    found = CALL.search(reply)
    assert (found["call"] if found else None) == inside


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("no json", "one JSON object"),
        ("[]", "one JSON object"),
        ('{"arguments": {}}', "one JSON object"),
        ('{"name": ["add"], "arguments": {}}', "there are: add"),
        ('{"name": "sub", "arguments": {}}', "there are: add"),
        ('{"name": "add", "arguments": 3}', "no object"),
        ('{"name": "add", "arguments": {"n": "3"}}', "$.n"),
        ('{"name": "add", "arguments": {"n": 3, "m": 1}}', "'m' was unexpected"),
        ('{"name": "add"}', "'n' is a required property"),
    ],
)
async def test_a_call_that_fits_no_tool_is_told_what_is_wrong(call: str, said: str) -> None:
    came = await toolbox().call(call)
    assert not came.is_fit
    assert said in came.text
