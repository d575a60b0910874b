"""Inline SVG charts: small, deterministic, without scripts, in the page's own colours.

Every chart is an image with a title for those who don't see it; pages put the same numbers in a table beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import exp

from markupsafe import Markup


def interval_bar(mean: float | None, low: float | None, high: float | None, *, width: int = 110) -> Markup:
    """A pass rate on a 0-1 track: the interval as a band, the mean as a dot."""
    if mean is None or low is None or high is None:
        return Markup("")
    left, right, at = (4 + (width - 8) * value for value in (low, high, mean))
    title = f"{100 * mean:.0f} %, 90 % interval {100 * low:.0f} to {100 * high:.0f} %"
    return Markup(
        f'<svg class="chart inline" role="img" aria-label="{title}" width="{width}" height="14" viewBox="0 0 {width} 14">'
        f"<title>{title}</title>"
        f'<rect class="track" x="4" y="6" width="{width - 8}" height="2" rx="1"/>'
        f'<rect class="band" x="{left:.1f}" y="3" width="{max(right - left, 1):.1f}" height="8" rx="2"/>'
        f'<circle class="dot" cx="{at:.1f}" cy="7" r="3"/></svg>'
    )


def sparkline(values: Sequence[float], *, title: str, width: int = 90, height: int = 20) -> Markup:
    """Values between 0 and 1 as a line, oldest first; nothing below two points."""
    if len(values) < 2:
        return Markup("")
    points = _polyline(list(enumerate(values)), (0, len(values) - 1), (0.0, 1.0), (2, 2, width - 4, height - 4))
    return Markup(
        f'<svg class="chart inline" role="img" aria-label="{escape(title)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(title)}</title><polyline class="stroke" points="{points}"/></svg>'
    )


def rate_history(
    points: Sequence[tuple[float, float, float, float]],
    *,
    x_label: str,
    title: str,
    width: int = 620,
    height: int = 200,
) -> Markup:
    """Pass rate over ``x``: points of (x, mean, low, high), the interval as a band behind the line."""
    if not points:
        return Markup("")
    xs = [point[0] for point in points]
    span = (min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1)
    box = (44, 12, width - 56, height - 46)
    mean = _polyline([(x, m) for x, m, _, _ in points], span, (0.0, 1.0), box)
    edge = [(x, high) for x, _, _, high in points] + [(x, low) for x, _, low, _ in reversed(points)]
    band = _polyline(edge, span, (0.0, 1.0), box)
    dots = "".join(
        f'<circle class="dot" cx="{cx}" cy="{cy}" r="2.5"/>' for cx, cy in (pair.split(",") for pair in mean.split())
    )
    return Markup(
        f'<svg class="chart" role="img" aria-label="{escape(title)}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{escape(title)}</title>{_frame(box, span, x_label)}"
        f'<polygon class="band" points="{band}"/><polyline class="stroke" points="{mean}"/>{dots}</svg>'
    )


def item_information(difficulty: float, *, ability: float | None, width: int = 620, height: int = 180) -> Markup:
    """Information p(1 - p) of an item over ability (logits), and where the shown policy stands."""
    span = (difficulty - 5.0, difficulty + 5.0)
    box = (44, 12, width - 56, height - 46)
    xs = [span[0] + (span[1] - span[0]) * step / 80 for step in range(81)]
    curve = []
    for x in xs:
        p = 1.0 / (1.0 + exp(difficulty - x))
        curve.append((x, 4 * p * (1 - p)))
    line = _polyline(curve, span, (0.0, 1.0), box)
    here = ""
    if ability is not None and span[0] <= ability <= span[1]:
        x = box[0] + box[2] * (ability - span[0]) / (span[1] - span[0])
        here = f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{box[1]}" y2="{box[1] + box[3]}" stroke-dasharray="3 3"/>'
    title = f"Item information over ability; difficulty {difficulty:.2f} logits"
    return Markup(
        f'<svg class="chart" role="img" aria-label="{title}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title>{title}</title>{_frame(box, span, "ability (logits)")}{here}<polyline class="stroke" points="{line}"/></svg>'
    )


def _polyline(
    points: Sequence[tuple[float, float]],
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    box: tuple[float, float, float, float],
) -> str:
    left, top, width, height = box
    x_low, x_high = x_span
    y_low, y_high = y_span
    return " ".join(
        f"{left + width * (x - x_low) / (x_high - x_low or 1):.1f},{top + height * (1 - (y - y_low) / (y_high - y_low or 1)):.1f}"
        for x, y in points
    )


def _frame(box: tuple[float, float, float, float], x_span: tuple[float, float], x_label: str) -> str:
    left, top, width, height = box
    bottom = top + height
    parts = [f'<line class="axis" x1="{left}" x2="{left + width}" y1="{bottom}" y2="{bottom}"/>']
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        parts.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}" stroke-opacity="0.5"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{100 * share:.0f} %</text>')
    parts.append(f'<text x="{left}" y="{bottom + 16}">{x_span[0]:.4g}</text>')
    parts.append(f'<text x="{left + width}" y="{bottom + 16}" text-anchor="end">{x_span[1]:.4g}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{bottom + 30}" text-anchor="middle">{escape(x_label)}</text>')
    return "".join(parts)
