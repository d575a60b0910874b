"""`envsdk.files.output`: bytes become text without raising, and a cut breaks no character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.files.output import collect, decode, plain


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_chunking_plays_no_part(chunks: list[bytes]) -> None:
    assert collect(chunks).text == decode(b"".join(chunks))


@given(st.text(max_size=40), st.integers(min_value=0, max_value=60), st.integers(min_value=1, max_value=7))
def test_a_cut_of_good_text_makes_no_replacement_character(text: str, cap: int, step: int) -> None:
    data = text.replace("\ufffd", "").encode()
    output = collect([data[i : i + step] for i in range(0, len(data), step)], cap_bytes=cap)
    assert "\ufffd" not in output.text
    assert output.total_bytes == len(data)
    assert output.kept_bytes == len(output.text.encode()) <= max(cap, 0)
    assert output.truncated == (len(data) > cap)
    assert data.decode().startswith(output.head)
    assert data.decode().endswith(output.tail)


@given(st.binary(max_size=60), st.integers(min_value=0, max_value=40))
def test_a_cut_adds_no_replacement_character_to_broken_text(data: bytes, cap: int) -> None:
    assert collect([data], cap_bytes=cap).text.count("\ufffd") <= decode(data).count("\ufffd")


def test_the_end_is_kept_as_well_as_the_beginning() -> None:
    output = collect([b"first ", b"x" * 100_000, b" last"], cap_bytes=20)
    assert output.head.startswith("first ")
    assert output.tail.endswith(" last")
    assert output.shown() == f"{output.head}\n[... 99991 bytes left out ...]\n{output.tail}"


def test_output_that_fits_is_shown_without_a_note() -> None:
    assert collect([b"a\n"], cap_bytes=2).shown() == "a\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[0;1mbold\x1b[m", "bold"),
        ("\x1b[?25l\x1b[2Khidden", "hidden"),
        ("\x1b]8;;https://x.y\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1bcreset\x1b7\x1bM", "reset"),
        ("\x1b(B\x1b[mplain", "plain"),
        ("\x1b", "\x1b"),
        ("a\x1b[31", "a\x1b[31"),
        ("tab\tnul\0cr\r\nbell\x07", "tab\tnul\0cr\r\nbell\x07"),
        ("[31m is text", "[31m is text"),
    ],
)
def test_only_escape_sequences_are_removed(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(alphabet=st.characters(exclude_characters="\x1b")))
def test_text_without_escapes_is_left_alone(text: str) -> None:
    assert plain(text) == text
