"""Reasons of changes in words, the numbers that made them beside; and how names and headings are written."""

from __future__ import annotations

import pytest

from registry.web.formats import episode, sentence
from registry.web.reasons import _PLAIN, because

EVIDENCE = {"mean": 0.913, "n": 64, "k": 60, "e_value": 21.7, "cusum": 5.4, "weight_version": 3}


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("posterior", "pass rate 91 % after 64 graded episodes"),
        ("e_value", "evidence E = 21.7"),
        ("cusum", "it fails again: CUSUM 5.4 of 5"),
        ("uncertain_again", "no class is certain any more: 91 % after 64 graded episodes"),
        ("prior_posterior", "by a new prior: pass rate 91 % after 64 graded episodes"),
        ("refresh", "retired by a published refresh"),
    ],
)
def test_a_change_is_told_with_its_numbers(reason, said):
    assert because(reason, EVIDENCE) == said


@pytest.mark.parametrize("reason", [*_PLAIN, "posterior", "e_value", "cusum"])
def test_without_evidence_it_is_told_in_words(reason):
    assert because(reason, {})
    assert "_" not in because(reason, {})


def test_a_reason_of_a_newer_version_is_shown_as_its_code_says():
    assert because("something_new", EVIDENCE) == "something new"


def test_a_long_name_of_an_episode_keeps_both_ends_and_is_whole_on_hover():
    name = "eval-d1b8796a-000017"
    shown = episode(name)
    assert f'title="{name}"' in shown
    assert ">eval-d…a-000017<" in shown
    assert ">short<" in episode("short")
    assert "<b>" not in episode("<b>bold</b> and long enough")


def test_a_heading_begins_with_a_capital():
    assert (sentence("there is no x"), sentence("'x' is no y"), sentence("")) == ("There is no x", "'x' is no y", "")
