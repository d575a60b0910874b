"""Charts are deterministic, stay inside their box, and tell their numbers in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.web import charts, formats

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
    assert charts.rate_history([], x_label="version", title="none") == ""


@given(st.lists(shares, min_size=2, max_size=40))
def test_a_sparkline_stays_inside_its_box(values: list[float]) -> None:
    svg = charts.sparkline(values, title="rates", width=90, height=20)

    assert all(0 <= x <= 90 and 0 <= y <= 20 for x, y in numbers(svg))


@given(st.lists(st.tuples(st.integers(0, 1000), shares), min_size=1, max_size=20, unique_by=lambda point: point[0]))
def test_a_history_is_well_formed_xml_inside_its_box(points: list[tuple[int, float]]) -> None:
    rows = [(x, p, max(0.0, p - 0.1), min(1.0, p + 0.1)) for x, p in sorted(points)]

    svg = charts.rate_history(rows, x_label="version", title="a < b & c")

    ET.fromstring(svg)
    assert all(0 <= x <= 620 and 0 <= y <= 200 for x, y in numbers(svg))


def test_equal_input_gives_equal_bytes() -> None:
    assert charts.item_information(0.3, ability=None) == charts.item_information(0.3, ability=None)


def test_information_peaks_at_the_difficulty() -> None:
    points = numbers(charts.item_information(1.0, ability=None))

    top = min(points, key=lambda point: point[1])
    assert top[0] == pytest.approx((points[0][0] + points[-1][0]) / 2)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0321, "32 ms"), (1.26, "1.3 s"), (90.0, "1.5 min")], ids=str
)
def test_durations_have_the_digits_that_matter(value: float | None, text: str) -> None:
    assert formats.seconds(value) == text


def test_an_absent_rate_is_not_zero() -> None:
    assert formats.percent(None) == "–"
    assert formats.estimate(None, None, None) == "not enough data"
    assert formats.percent(0.0) == "0 %"


def test_a_moment_is_read_by_machines_and_people() -> None:
    assert formats.moment(0) == '<time datetime="1970-01-01T00:00:00+00:00">1970-01-01 00:00 UTC</time>'


def test_a_state_is_never_colour_alone() -> None:
    assert "✘ broken" in formats.state("broken")
    assert "too hard" in formats.state("too_hard")
