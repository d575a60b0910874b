"""Charts as SVG: well formed, escaped, the same for the same data, and honest about having none."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.report.charts import Bar, Line, histogram, line_chart, stacked_bars, timeline


def shapes(html: str, tag: str) -> list:
    return ET.fromstring(f"<div>{html}</div>").findall(f".//{tag}")


def test_a_curve_breaks_where_a_value_is_missing() -> None:
    (path,) = shapes(line_chart("t", [Line("a", [(1, 0.0), (2, None), (3, 1.0), (4, 2.0)])]), "path")
    assert path.get("d").count("M") == 2


def test_every_point_tells_its_value() -> None:
    titles = [dot.find("title").text for dot in shapes(line_chart("t", [Line("loss", [(1, 0.25)])]), "circle")]
    assert titles == ["loss, step 1: 0.25"]


def test_stacked_parts_stand_on_each_other_and_add_up() -> None:
    bars = shapes(stacked_bars("t", [1], {"a": [1.0], "b": [3.0], "c": [0.0]}), "rect")
    (y0, h0), (y1, h1) = [(float(bar.get("y")), float(bar.get("height"))) for bar in bars]
    assert len(bars) == 2
    assert h1 == pytest.approx(3 * h0, rel=0.01)
    assert y1 + h1 == pytest.approx(y0, abs=0.11)


def test_a_histogram_writes_shares() -> None:
    texts = [text.text for text in shapes(histogram("t", {"0": 1, "1": 3}, unit=""), "text")]
    assert {"25 %", "75 %"} <= set(texts)


def test_a_bar_outside_the_window_is_not_drawn_and_one_across_its_edge_is_cut() -> None:
    bars = [Bar(0, 1, "x", "before"), Bar(4, 20, "x", "across")]
    rects = shapes(timeline("t", {"lane": bars}, kinds=["x"], start=5, end=10), "rect")
    assert [rect.find("title").text for rect in rects] == ["across"]
    assert float(rects[0].get("x")) + float(rects[0].get("width")) <= 1100


@pytest.mark.parametrize(
    "empty",
    [
        line_chart("nothing", []),
        line_chart("nothing", [Line("a", [(1, None)])]),
        stacked_bars("nothing", [], {"a": []}),
        histogram("nothing", {}, unit=""),
        timeline("nothing", {}, kinds=[], start=0, end=0),
    ],
)
def test_no_data_is_said_in_words(empty: str) -> None:
    assert "not enough data" in empty


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12))
def test_whatever_it_is_called_and_holds_the_markup_is_well_formed(name, values) -> None:
    clean = "".join(ch for ch in name if ch.isprintable())
    html = line_chart(clean, [Line(clean, list(enumerate(values)))])
    assert shapes(html, "path")
    assert html == line_chart(clean, [Line(clean, list(enumerate(values)))])
