import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes.frames import (
    End,
    FrameError,
    Op,
    Parser,
    frame,
    parse_end,
    parse_peek,
    start_payload,
    text,
    texts,
)

NONCE = bytes(range(16))
frames = st.lists(
    st.tuples(st.sampled_from([b"O", b"E", b"X", b"R"]), st.integers(0, 2**32 - 1), st.binary(max_size=300)), max_size=8
)


@given(frames, st.lists(st.integers(1, 400), max_size=40))
def test_a_stream_cut_anywhere_gives_the_frames_that_were_written(
    sent: list[tuple[bytes, int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(frame(NONCE, kind, number, payload) for kind, number, payload in sent)
    parser = Parser(NONCE)
    seen = []
    for size in [*cuts, len(stream) + 1]:
        seen += list(parser.feed(stream[:size]))
        stream = stream[size:]
    assert seen == [(kind[0], number, payload) for kind, number, payload in sent]


@given(st.binary(min_size=25, max_size=200).filter(lambda data: data[:16] != NONCE))
def test_bytes_without_the_nonce_are_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(Parser(NONCE).feed(data))


def test_a_frame_of_another_channel_is_refused_after_good_ones() -> None:
    parser = Parser(NONCE)
    stream = frame(NONCE, b"O", 1, b"good") + frame(b"x" * 16, b"X", 1, b"forged")
    found = parser.feed(stream)
    assert next(found) == (ord("O"), 1, b"good")
    with pytest.raises(FrameError):
        next(found)


def test_an_absurd_length_is_refused_instead_of_awaited() -> None:
    head = struct.pack("<16scII", NONCE, b"O", 1, 2**31)
    with pytest.raises(FrameError):
        list(Parser(NONCE).feed(head))


def test_a_text_with_a_zero_inside_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        text("a\0b")


@given(st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=50))
def test_texts_carry_length_bytes_and_a_closing_zero(value: str) -> None:
    raw = value.encode()
    assert texts([value]) == struct.pack("<II", 1, len(raw) + 1) + raw + b"\0"


def test_undecodable_names_of_the_host_survive() -> None:
    assert text(b"\xff".decode("utf-8", "surrogateescape")) == b"\x02\x00\x00\x00\xff\x00"


@given(st.integers(0, 2), st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 2**60))
def test_ends_are_read_as_they_are_packed(how: int, code: int, timed_out: bool, total: int) -> None:
    payload = struct.pack("<BIBQQQ", how, code, timed_out, total, 5, 6)
    assert parse_end(payload) == End(how, code, timed_out, total, 5, 6)


def test_peeked_files_keep_their_order_and_their_gaps() -> None:
    payload = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0xFFFFFFFF) + struct.pack("<I", 0)
    assert parse_peek(payload) == [b"abc", None, b""]


def test_a_deadline_is_never_rounded_down_to_none() -> None:
    payload = start_payload(Op.NOOP, [], user="", timeout_s=0.0, output_cap_bytes=0)
    assert struct.unpack_from("<BQ", payload) == (Op.NOOP, 1)
