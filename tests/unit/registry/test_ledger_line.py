"""A ledger's line is read as the record's own validator reads it, whichever of the two readers takes it."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, field_validator

from envsdk.episode.record import EpisodeRecord, PolicyId, TokenTrace, Turn, VersionSpan
from envsdk.frozen import Frozen
from registry import ledger_line
from registry.acceptance import Rejected
from registry.ledger_line import read_line
from tests.fakes.outcomes import finished

FULL = EpisodeRecord(
    episode_id="one",
    slug="a",
    task_digest="0" * 64,
    verifier_digest="1" * 64,
    level={"a": 1, "b": 2.5, "c": True, "d": "é"},
    policy=PolicyId(model="m", sampling={"temperature": 0.5, "top_k": 3, "mode": "x"}),
    weight_version_oldest=3,
    outcome=finished(1.0),
    facts={"list": [1, 2.5, None, True, {"deep": "\n\u20ac\U0001f600"}]},
    turns=(Turn(reply="yes", generated_tokens=3, exit_code=0),),
    tokens=TokenTrace(
        ids=(1, 2),
        loss_mask=(0, 1),
        logprobs=(0.0, -0.5),
        versions=(VersionSpan(version=3, start=1, end=2),),
        prompt_len=1,
    ),
    started_at=12.5,
)
LINE = FULL.model_dump_json().encode()
ODD = (
    *(b"NaN", b"Infinity", b"1e999", b"-1", b"1.0", b"-0", b"-0.0", b"1e5", b"1E+2", b"01", b"1.", b".5", b"+1"),
    *(b"123456789012345678901234567890", b"18446744073709551616", b"9007199254740993.0", b"0.1e-400", b"2147483648"),
    *(b"true", b"null", b'"x"', b'""', b"{}", b"[]", b"[1]", b"\\ud800", b"\\u0000", b"\\ud83d\\ude00", b"\\q", b"\\/"),
    *(b"\x01", b"\xff", b"\xed\xa0\x80", b"\xc3\xa9", b" ", b"\t", b"\n", b"\x0b", b",", b'"q":1,'),
)
_VALUE = re.compile(rb'(?<=[:\[,])(-?[0-9][0-9.e+-]*|null|true|false|"[^"]*"|\{\}|\[\])')
_PAIR = re.compile(rb'"[a-z_]+":(-?[0-9][0-9.e+-]*|null|true|false|"[^"]*")')


@st.composite
def damaged(draw):
    """The line with a value replaced, a field given twice, or anything put into it or taken out."""
    line = LINE
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["value", "value", "twice", "in", "out"]))
        if kind == "value":
            found = draw(st.sampled_from(list(_VALUE.finditer(line))))
            line = line[: found.start()] + draw(st.sampled_from(ODD)) + line[found.end() :]
        elif kind == "twice":
            pairs = list(_PAIR.finditer(line)) or [re.match(b"", line)]
            at = draw(st.sampled_from(pairs)).start()
            line = line[:at] + draw(st.sampled_from(pairs)).group() + b"," + line[at:]
        else:
            at = draw(st.integers(0, len(line)))
            put = draw(st.sampled_from(ODD)) if kind == "in" else b""
            line = line[:at] + put + line[at + (0 if kind == "in" else draw(st.integers(1, 20))) :]
    return line


def plain(value):
    """A record of either reader as lists and dicts, written out: types of numbers are told apart."""
    dumped = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value.model_dump()
    return repr(listed(dumped))


def listed(value):
    if isinstance(value, dict):
        return {name: listed(one) for name, one in value.items()}
    return [listed(one) for one in value] if isinstance(value, list | tuple) else value


def taken_by_twin(line):
    read = read_line(line, which="line 1")
    return not isinstance(read, Rejected) and isinstance(read[0], msgspec.Struct)


@given(damaged())
@settings(max_examples=600, derandomize=True)
def test_what_the_twin_takes_is_what_the_model_reads(line):
    if taken_by_twin(line):
        assert plain(read_line(line, which="x")[0]) == plain(EpisodeRecord.model_validate_json(line))


@given(damaged())
@settings(max_examples=300, derandomize=True)
def test_what_is_kept_of_a_line_reads_as_the_same_record(line):
    read = read_line(line, which="x")
    if not isinstance(read, Rejected):
        assert plain(EpisodeRecord.model_validate_json(read[1])) == plain(read[0])


def test_a_line_as_programs_write_it_is_taken_by_the_twin():
    """Else bulk ingest is slow, and nothing says so."""
    assert taken_by_twin(LINE)
    assert taken_by_twin(b'  {"episode_id":"x"' + LINE[len(b'{"episode_id":"one"') :] + b"\r\n")


def test_a_conversion_that_the_model_makes_is_made():
    record, stored = read_line(LINE.replace(b'"started_at":12.5', b'"started_at":"7"'), which="x")
    assert record.started_at == 7.0
    assert EpisodeRecord.model_validate_json(stored).started_at == 7.0


def test_a_validator_of_the_model_is_asked():
    rejected = read_line(LINE.replace(b'"loss_mask":[0,1]', b'"loss_mask":[0]'), which="line 4")
    assert (rejected.which, rejected.code) == ("line 4", "invalid_record")
    assert "ragged" in rejected.why


@pytest.mark.parametrize("deep", [100, 190, 199, 200, 201, 300])
def test_a_line_is_as_deep_as_the_model_can_read_it_again(deep):
    line = LINE.replace(b'"facts":{', b'"facts":{"x":' + b"[" * deep + b"]" * deep + b",")
    read = read_line(line, which="x")
    if not isinstance(read, Rejected):
        EpisodeRecord.model_validate_json(read[1])


class _Bounded(Frozen):
    value: int = Field(ge=0)


class _Annotated(Frozen):
    value: Annotated[float, Field(lt=1)] = 0.0


class _Validated(Frozen):
    value: int = 0

    @field_validator("value")
    @classmethod
    def _even(cls, value: int) -> int:
        return value * 2


@pytest.mark.parametrize("model", [_Bounded, _Annotated, _Validated])
def test_what_cannot_be_mirrored_has_no_twin(model):
    with pytest.raises(ledger_line._NoTwinError):
        ledger_line._twin(model)


def test_without_a_twin_every_line_is_the_models(monkeypatch):
    monkeypatch.setattr(ledger_line, "_twin_of_record", lambda: None)
    assert read_line(LINE, which="line 1") == (FULL, LINE)
    assert read_line(b"{}", which="line 1").code == "invalid_record"


def test_a_model_that_cannot_be_mirrored_is_read_by_itself(monkeypatch):
    monkeypatch.setattr(ledger_line, "EpisodeRecord", _Bounded)
    ledger_line._twin_of_record.cache_clear()
    try:
        assert ledger_line._twin_of_record() is None
    finally:
        ledger_line._twin_of_record.cache_clear()
