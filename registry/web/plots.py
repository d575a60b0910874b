"""Plots with axes: pass rates with their intervals, and item information over ability.

As in `registry.web.charts`: images with a title, and the same numbers in a table on the page. Information of an item
with difficulty b at ability theta is p(1 - p) with p = sigmoid(theta - b) (Rasch); a set's is the sum of its items'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import exp

from markupsafe import Markup

Box = tuple[float, float, float, float]
Span = tuple[float, float]
Ability = tuple[str, float]
"""A policy's name and its ability in logits."""
_STEPS = 80
_MOST_NAMES = 8


def rate_history(
    points: Sequence[tuple[float, float, float, float]],
    *,
    x_label: str,
    title: str,
    width: int = 620,
    height: int = 220,
) -> Markup:
    """Pass rate over ``x``: points of (x, mean, low, high), the interval as a band behind the line."""
    if not points:
        return Markup("")
    xs = [point[0] for point in points]
    span = (min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1)
    box = (48.0, 12.0, width - 64.0, height - 54.0)
    place = _placer(box, span, (0.0, 1.0))
    mean = [place(x, m) for x, m, _, _ in points]
    edge = [place(x, high) for x, _, _, high in points] + [place(x, low) for x, _, low, _ in reversed(points)]
    dots = "".join(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in mean)
    whiskers = "".join(
        f'<line class="whisker" x1="{place(x, low)[0]:.1f}" x2="{place(x, high)[0]:.1f}" '
        f'y1="{place(x, low)[1]:.1f}" y2="{place(x, high)[1]:.1f}"/>'
        for x, _, low, high in points
    )
    body = (
        f'<polygon class="band" points="{_points(edge)}"/>{whiskers}'
        f'<polyline class="stroke" points="{_points(mean)}"/>{dots}'
    )
    whole = all(float(x).is_integer() for x in xs)
    return _plot(title, width, height, _rates(box) + _ticks(box, span, whole=whole) + _name(box, x_label) + body)


def rate_spread(points: Sequence[tuple[float, float, float]], *, title: str, width: int = 620) -> Markup:
    """Pass rates of tasks, hardest first: points of (mean, low, high); between 20 and 80 % groups are mixed."""
    if not points:
        return Markup("")
    height = 200
    box = (48.0, 12.0, width - 64.0, height - 40.0)
    ordered = sorted(points)
    place = _placer(box, (0.0, float(max(len(ordered) - 1, 1))), (0.0, 1.0))
    top, bottom = place(0, 0.8)[1], place(0, 0.2)[1]
    thin = 1.0 if len(ordered) > 120 else 2.0
    marks = []
    for number, (mean, low, high) in enumerate(ordered):
        (x, y), (_, y_low), (_, y_high) = place(number, mean), place(number, low), place(number, high)
        marks.append(
            f'<line class="whisker" stroke-width="{thin}" x1="{x:.1f}" x2="{x:.1f}" '
            f'y1="{y_low:.1f}" y2="{y_high:.1f}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{thin + 0.5}"/>'
        )
    zone = f'<rect class="zone" x="{box[0]}" y="{top:.1f}" width="{box[2]}" height="{bottom - top:.1f}"/>'
    return _plot(title, width, height, zone + _rates(box) + _name(box, "tasks, hardest first", gap=16) + "".join(marks))


def information(
    difficulties: Sequence[float], *, abilities: Sequence[Ability], title: str, width: int = 620, height: int = 210
) -> Markup:
    """Information of items over ability (logits), and where policies stand."""
    if not difficulties:
        return Markup("")
    shown = sorted(abilities, key=lambda one: one[1])[-_MOST_NAMES:]
    marks = [*difficulties, *(theta for _, theta in shown)]
    span = (min(marks) - 2.5, max(marks) + 2.5)
    xs = [span[0] + (span[1] - span[0]) * step / _STEPS for step in range(_STEPS + 1)]
    ys = [sum(item_information(x, b) for b in difficulties) for x in xs]
    most = max(ys)
    head = 13.0 * len(shown)  # the names stand above the curve, one line each
    box = (48.0, 10.0 + head, width - 64.0, height - 52.0)
    place = _placer(box, span, (0.0, most))
    lines = []
    for number, (name, theta) in enumerate(shown):
        x, _ = place(theta, 0)
        anchor, aside = ("end", -4) if x > box[0] + box[2] * 0.7 else ("start", 4)
        y = 14 + 13 * number
        lines.append(
            f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8:.1f}" y2="{box[1] + box[3]}"/>'
            f'<text x="{x + aside:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(name)}</text>'
        )
    curve = f'<polyline class="stroke" points="{_points([place(x, y) for x, y in zip(xs, ys, strict=True)])}"/>'
    scale = _scale(box, [(0.0, "0"), (1.0, f"{most:.3g}")])
    axis = _ticks(box, span, whole=False) + _name(box, "ability (logits)")
    return _plot(title, width, height + round(head), scale + axis + curve + "".join(lines))


def item_information(theta: float, b: float) -> float:
    """Information of one item at an ability, at most 0.25."""
    p = 1.0 / (1.0 + exp(min(max(b - theta, -60.0), 60.0)))
    return p * (1.0 - p)


def _plot(title: str, width: int, height: int, body: str) -> Markup:
    said = escape(title)
    return Markup(
        f'<svg class="chart plot" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{said}</title>{body}</svg>'
    )


def _placer(box: Box, x_span: Span, y_span: Span) -> Callable[[float, float], tuple[float, float]]:
    left, top, width, height = box

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_span[0]) / (x_span[1] - x_span[0] or 1)
        up = (y - y_span[0]) / (y_span[1] - y_span[0] or 1)
        return left + width * across, top + height * (1 - up)

    return place


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _rates(box: Box) -> str:
    return _scale(box, [(share, f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0)])


def _scale(box: Box, marks: Sequence[tuple[float, str]]) -> str:
    left, top, width, height = box
    parts = []
    for share, text in marks:
        y = top + height * (1 - share)
        parts.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join(parts)


def _ticks(box: Box, span: Span, *, whole: bool) -> str:
    left, top, width, height = box
    step = _step((span[1] - span[0]) / 8, whole=whole)
    at = -(-span[0] // step) * step
    parts = []
    while at <= span[1] + 1e-9:
        x = left + width * (at - span[0]) / (span[1] - span[0])
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{top + height}" y2="{top + height + 4}"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + height + 17}" text-anchor="middle">{at + 0.0:g}</text>')
        at = round(at + step, 9)
    return "".join(parts)


def _step(least: float, *, whole: bool) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least ``least``."""
    power = 1.0 if whole else 10.0**-3
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10


def _name(box: Box, label: str, *, gap: int = 34) -> str:
    left, top, width, height = box
    return f'<text x="{left + width / 2}" y="{top + height + gap}" text-anchor="middle">{escape(label)}</text>'
