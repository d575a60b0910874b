"""Charts as inline SVG: text in, text out, no library, the same bytes for the same data.

Colours are classes (``s0`` to ``s8``) that the page's style sheet gives values, so that dark mode is its business.
Every chart has a title and a description for screen readers; the numbers stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 10, 28


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a timeline, in seconds; ``kind`` is its class, ``label`` what a pointer is told."""

    start: float
    end: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: (x, y) points, a `None` y breaks it."""

    name: str
    points: Sequence[tuple[float, float | None]]
    dashed: bool = False


def line_chart(title: str, lines: Sequence[Line], *, unit: str = "", low: float | None = None) -> str:
    """Curves over steps."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points if y is not None]
    if not xs or not ys:
        return _empty(title)
    frame = _Frame(min(xs), max(xs), min([*ys, *([] if low is None else [low])]), max(ys))
    body = [frame.axes(unit)]
    for number, line in enumerate(lines):
        style = ' stroke-dasharray="5 4"' if line.dashed else ""
        body.append(f'<path class="line s{number}"{style} d="{_path(frame, line.points)}"/>')
        body += [
            f'<circle class="dot s{number}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="2.5">'
            f"<title>{escape(line.name)}, step {x:g}: {y:.4g}{unit}</title></circle>"
            for x, y in line.points
            if y is not None and not line.dashed
        ]
    return _svg(title, "".join(body)) + _legend([line.name for line in lines])


def stacked_bars(title: str, steps: Sequence[int], parts: Mapping[str, Sequence[float]], *, unit: str = "s") -> str:
    """One bar a step, made of named parts from the bottom up."""
    totals = [sum(values[i] for values in parts.values()) for i in range(len(steps))]
    if not steps or not any(totals):
        return _empty(title)
    frame = _Frame(min(steps) - 0.5, max(steps) + 0.5, 0.0, max(totals), ticks=steps)
    width = max(2.0, 0.72 * (frame.x(1) - frame.x(0)))
    body = [frame.axes(unit)]
    for i, step in enumerate(steps):
        base = 0.0
        for number, (name, values) in enumerate(parts.items()):
            if values[i] <= 0:
                continue
            top, bottom = frame.y(base + values[i]), frame.y(base)
            label = f"step {step}, {name}: {values[i]:.2f} {unit}"
            body.append(
                f'<rect class="fill s{number}" x="{frame.x(step) - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
                f'height="{max(0.5, bottom - top):.1f}"><title>{escape(label)}</title></rect>'
            )
            base += values[i]
    return _svg(title, "".join(body)) + _legend(list(parts))


def histogram(title: str, counts: Mapping[str, int], *, unit: str) -> str:
    """A bar for each name, with its share written on it."""
    total = sum(counts.values())
    if not total:
        return _empty(title)
    frame = _Frame(-0.5, len(counts) - 0.5, 0.0, max(counts.values()), ticks=())
    width = min(90.0, 0.7 * (frame.x(1) - frame.x(0)))
    body = [frame.axes(unit)]
    for i, (name, count) in enumerate(counts.items()):
        x, top = frame.x(i), frame.y(count)
        body.append(
            f'<rect class="fill s0" x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{frame.y(0) - top:.1f}"><title>{escape(name)}: {count}</title></rect>'
            f'<text class="on" x="{x:.1f}" y="{max(top - 4, 10):.1f}">{100 * count / total:.0f} %</text>'
            f'<text class="tick mid" x="{x:.1f}" y="{HEIGHT - 8}">{escape(name)}</text>'
        )
    return _svg(title, "".join(body))


def timeline(title: str, lanes: Mapping[str, Sequence[Bar]], *, kinds: Sequence[str], start: float, end: float) -> str:
    """Lanes of bars over seconds: who did what, and who waited."""
    if end <= start:
        return _empty(title)
    row, left, width = (22 if len(lanes) < 12 else 13), 90, 1100
    height = row * len(lanes) + 30
    scale = (width - left - 10) / (end - start)
    colour = {kind: number for number, kind in enumerate(kinds)}
    body = []
    for tick in _ticks(start, end, 12):
        x = left + (tick - start) * scale
        body.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 22}"/>')
        body.append(f'<text class="tick mid" x="{x:.1f}" y="{height - 6}">{tick:g} s</text>')
    for number, (name, bars) in enumerate(lanes.items()):
        y = 4 + number * row
        body.append(f'<text class="tick" text-anchor="end" x="{left - 8}" y="{y + row - 4}">{escape(name)}</text>')
        for bar in bars:
            if bar.end < start or bar.start > end:
                continue
            x = left + (max(bar.start, start) - start) * scale
            wide = max(0.8, (min(bar.end, end) - max(bar.start, start)) * scale)
            body.append(
                f'<rect class="fill s{colour.get(bar.kind, 8)}" x="{x:.1f}" y="{y + 2}" width="{wide:.1f}" '
                f'height="{row - 4}"><title>{escape(bar.label)}</title></rect>'
            )
    head = f'<svg role="img" viewBox="0 0 {width} {height}" class="wide"><title>{escape(title)}</title>'
    return head + "".join(body) + "</svg>" + _legend(kinds)


class _Frame:
    """Scales of a chart, and its axes."""

    def __init__(self, x0: float, x1: float, y0: float, y1: float, *, ticks: Sequence[float] | None = None) -> None:
        self.x0, self.x1 = x0, x1 if x1 > x0 else x0 + 1
        span = y1 - y0 or abs(y1) or 1.0
        self.y0, self.y1 = (y0 if y0 == 0 else y0 - 0.05 * span), y1 + 0.08 * span
        self._ticks = ticks

    def x(self, value: float) -> float:
        return _LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (value - self.y0) / (self.y1 - self.y0) * (HEIGHT - _TOP - _BOTTOM)

    def axes(self, unit: str) -> str:
        parts = []
        for tick in _ticks(self.y0, self.y1, 5):
            y = self.y(tick)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" text-anchor="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{tick:g}{escape(unit)}</text>'
            )
        steps = _ticks(self.x0, self.x1, 10) if self._ticks is None else _thinned(self._ticks, 20)
        parts += [
            f'<text class="tick mid" x="{self.x(tick):.1f}" y="{HEIGHT - 8}">{tick:g}</text>'
            for tick in steps
            if float(tick).is_integer()
        ]
        return "".join(parts)


def _thinned(ticks: Sequence[float], most: int) -> list[float]:
    every = max(1, math.ceil(len(ticks) / most))
    return list(ticks[::every])


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between low and high."""
    raw = (high - low) / most
    size = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
    first = math.ceil(low / step)
    return [round(i * step, 10) for i in range(first, math.floor(high / step) + 1)]


def _path(frame: _Frame, points: Sequence[tuple[float, float | None]]) -> str:
    parts, pen = [], "M"
    for x, y in points:
        if y is None:
            pen = "M"
            continue
        parts.append(f"{pen}{frame.x(x):.1f} {frame.y(y):.1f}")
        pen = "L"
    return " ".join(parts)


def _svg(title: str, body: str) -> str:
    return f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{escape(title)}</title>{body}</svg>'


def _legend(names: Sequence[str]) -> str:
    items = "".join(f'<li><span class="key s{number}"></span>{escape(name)}</li>' for number, name in enumerate(names))
    return f'<ul class="legend">{items}</ul>'


def _empty(title: str) -> str:
    return f'<p class="none">{escape(title)}: not enough data.</p>'
