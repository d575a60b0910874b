"""Suggestions: the nearest known word, and none where nothing is near."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envsdk.suggest import did_you_mean

WORDS = st.lists(st.text("abcdefghij_", min_size=4, max_size=12), min_size=1, max_size=6, unique=True)


def test_a_slip_is_mended() -> None:
    assert did_you_mean("regisrty", ["registry", "sandbox"]) == "did you mean 'registry'?"


def test_what_is_far_from_everything_gets_no_guess() -> None:
    assert did_you_mean("colour", ["registry", "sandbox"]) == ""


def test_a_lower_cutoff_guesses_more() -> None:
    assert did_you_mean("sbox", ["sandbox"], cutoff=0.9) == ""
    assert did_you_mean("sbox", ["sandbox"], cutoff=0.5) == "did you mean 'sandbox'?"


@given(WORDS, st.data())
def test_a_known_word_is_its_own_nearest_whatever_the_order(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert did_you_mean(word, words) == did_you_mean(word, reversed(words)) == f"did you mean {word!r}?"
