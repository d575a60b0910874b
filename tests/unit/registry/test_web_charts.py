"""Charts are deterministic, stay inside their box, and tell their numbers in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.web import charts, formats, plots

shares = st.floats(0, 1)


def numbers(svg: str) -> list[tuple[float, float]]:
    found = re.findall(r'points="([^"]*)"', svg)
    return [tuple(map(float, pair.split(","))) for points in found for pair in points.split()]


@given(st.tuples(shares, shares, shares).map(sorted))
def test_an_interval_bar_stays_on_its_track(values: list[float]) -> None:
    low, mean, high = values
    root = ET.fromstring(charts.interval_bar(mean, low, high))

    dot = next(part for part in root.iter() if part.get("class") == "dot")
    assert 0 <= float(dot.get("cx")) <= float(root.get("width"))


def test_an_interval_bar_tells_its_numbers_in_words() -> None:
    svg = charts.interval_bar(0.5, 0.25, 0.75)

    assert "50 %, 90 % interval 25 to 75 %" in svg


def test_nothing_measured_draws_nothing() -> None:
    assert charts.interval_bar(None, None, None) == ""
    assert charts.sparkline([0.5], title="one") == ""
    assert plots.rate_history([], x_label="version", title="none") == ""


@given(st.lists(shares, min_size=2, max_size=40))
def test_a_sparkline_stays_inside_its_box(values: list[float]) -> None:
    svg = charts.sparkline(values, title="rates", width=90, height=20)

    assert all(0 <= x <= 90 and 0 <= y <= 20 for x, y in numbers(svg))


@given(st.lists(st.tuples(st.integers(0, 1000), shares), min_size=1, max_size=20, unique_by=lambda point: point[0]))
def test_a_history_is_well_formed_xml_inside_its_box(points: list[tuple[int, float]]) -> None:
    rows = [(x, p, max(0.0, p - 0.1), min(1.0, p + 0.1)) for x, p in sorted(points)]

    svg = plots.rate_history(rows, x_label="version", title="a < b & c")

    ET.fromstring(svg)
    assert all(0 <= x <= 620 and 0 <= y <= 200 for x, y in numbers(svg))


def test_equal_input_gives_equal_bytes() -> None:
    assert plots.information([0.3], abilities=[], title="i") == plots.information([0.3], abilities=[], title="i")


def test_information_peaks_at_the_difficulty() -> None:
    points = numbers(plots.information([1.0], abilities=[], title="i"))

    top = min(points, key=lambda point: point[1])
    assert top[0] == pytest.approx((points[0][0] + points[-1][0]) / 2)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_an_items_information_is_at_most_a_quarter(theta: float, b: float) -> None:
    assert 0 <= plots.item_information(theta, b) <= 0.25


@given(st.lists(st.floats(-8, 8), max_size=12), st.lists(st.floats(-8, 8), min_size=1, max_size=9))
def test_information_of_a_set_stays_inside_its_box(thetas: list[float], difficulties: list[float]) -> None:
    abilities = [(f"<policy {number}>", theta) for number, theta in enumerate(thetas)]
    svg = plots.information(difficulties, abilities=abilities, title="i & j")

    root = ET.fromstring(svg)
    assert all(0 <= x <= 620 and 0 <= y <= float(root.get("height")) for x, y in numbers(svg))


@given(st.lists(st.tuples(shares, shares, shares).map(sorted), min_size=1, max_size=300))
def test_a_spread_has_one_dot_a_task_the_hardest_first(rates: list[list[float]]) -> None:
    root = ET.fromstring(plots.rate_spread([(mean, low, high) for low, mean, high in rates], title="rates"))

    heights = [float(part.get("cy")) for part in root.iter() if part.get("class") == "dot"]
    assert len(heights) == len(rates)
    assert heights == sorted(heights, reverse=True)


def test_states_stand_in_the_order_in_which_tasks_pass_through_them() -> None:
    svg = charts.state_bar({"saturated": 1, "learnable": 3})

    assert "3 learnable, 1 saturated" in svg
    assert svg.index("fill-learnable") < svg.index("fill-saturated")


@given(st.lists(st.tuples(st.none() | st.integers(0, 99), st.integers(1, 500)), min_size=1, max_size=30))
def test_a_strip_holds_every_token_once(spans: list[tuple[int | None, int]]) -> None:
    root = ET.fromstring(charts.token_strip(spans, title="tokens"))

    rects = [part for part in root if part.tag == "rect"]
    told = [int(part[0].text.split()[0]) for part in rects]
    assert told == [tokens for _, tokens in spans]


def test_tokens_that_the_model_did_not_generate_have_no_version_colour() -> None:
    svg = charts.token_strip([(None, 3), (7, 2)], title="tokens")

    assert svg.count('class="track"') == 1
    assert 'class="version-1"' in svg


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0321, "32 ms"), (1.26, "1.3 s"), (90.0, "1.5 min")], ids=str
)
def test_durations_have_the_digits_that_matter(value: float | None, text: str) -> None:
    assert formats.seconds(value) == text


def test_an_absent_rate_is_not_zero() -> None:
    assert formats.percent(None) == "–"
    assert formats.estimate(None, None, None) == "not enough data"
    assert formats.percent(0.0) == "0 %"


def test_an_instant_is_read_by_machines_and_people() -> None:
    assert formats.instant(60) == '<time datetime="1970-01-01T00:01:00+00:00">1970-01-01 00:01 UTC</time>'


def test_a_moment_says_how_long_ago_beside_it() -> None:
    assert formats.moment(60).startswith(formats.instant(60))
    assert "years ago" in formats.moment(60)


def test_a_time_that_nobody_knows_is_not_1970() -> None:
    assert formats.moment(0.0) == formats.day(None) == formats.instant(0.0) == "–"


@pytest.mark.parametrize(
    ("passed", "text"),
    [
        (5, "in the last hour"),
        (3_600, "1 hour ago"),
        (7_300, "2 hours ago"),
        (3e5, "3 days ago"),
        (-4e3, "in the future"),
    ],
    ids=str,
)
def test_time_passed_is_told_in_its_largest_whole_unit(passed: float, text: str) -> None:
    assert formats.ago(1e9, now=1e9 + passed) == text


def test_a_rate_of_counts_stands_with_its_interval() -> None:
    assert formats.rate(12, 64) == "12/64 (19 %, 95 % CI 11–30 %)"
    assert formats.rate(0, 0) == "not enough data"


def test_a_level_is_told_in_words() -> None:
    assert formats.level({"words": 4, "accents": False}) == "words = 4, accents = no"
    assert formats.level({}) == "the only one"


def test_a_state_is_never_colour_alone() -> None:
    assert "✘ broken" in formats.state("broken")
    assert "too hard" in formats.state("too_hard")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0"), (41.23, "41.2"), (999.9, "999.9"), (7.135e15, "7.1 × 10¹⁵")], ids=str
)
def test_evidence_is_read_at_a_glance(value: float, text: str) -> None:
    assert formats.evidence(value) == text
