"""Plots of a fit as plain SVG files: difficulties with their intervals, and how much a set tells at each ability."""

from __future__ import annotations

from html import escape
from math import exp, log10

from registry.calibration.report import FitReport

_WIDTH, _HEIGHT, _MARGIN = 720, 360, 44
_STYLE = (
    "<style>text{font:12px sans-serif;fill:currentColor}.axis{stroke:currentColor;opacity:.4}"
    ".band{stroke:#4a7fb5;opacity:.45}.dot{fill:#2a5d8f}.line{fill:none;stroke:#2a5d8f;stroke-width:2}"
    ".mark{stroke:#b5564a;opacity:.7}</style>"
)


def difficulty_plot(report: FitReport) -> str:
    """Every task at its difficulty with its 90 % interval, easiest first; models' abilities as ticks on top."""
    items = sorted(report.items, key=lambda item: item.difficulty)
    ends = [item.low for item in items] + [item.high for item in items] + [m.ability for m in report.abilities]
    low, high = min(ends), max(ends)
    step = (_HEIGHT - 2 * _MARGIN) / max(1, len(items))
    body = []
    for place, item in enumerate(items):
        y = _MARGIN + step * (place + 0.5)
        title = f"{item.task}: {item.difficulty:.2f} ({item.low:.2f} to {item.high:.2f}), {item.passes}/{item.trials}"
        body.append(
            f'<g><title>{escape(title)}</title><line class="band" stroke-width="{max(1.0, min(4.0, step * 0.8)):.2f}" '
            f'x1="{_x(item.low, low, high):.1f}" x2="{_x(item.high, low, high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle class="dot" r="{max(0.8, min(3.0, step)):.2f}" '
            f'cx="{_x(item.difficulty, low, high):.1f}" cy="{y:.1f}"/></g>'
        )
    for model in report.abilities:
        at = _x(model.ability, low, high)
        body.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_MARGIN - 14}" y2="{_MARGIN - 4}">'
            f"<title>{escape(model.model)}: ability {model.ability:.2f} (se {model.se:.2f})</title></line>"
        )
    title = f"Difficulty of {len(items)} tasks with 90 % intervals; ticks are the abilities of models"
    return _svg(title, body, low, high, "difficulty (logits)")


def information_plot(report: FitReport) -> str:
    """Information of the whole set, sum of p (1 - p), over ability: where it can still tell models apart."""
    abilities = [model.ability for model in report.abilities]
    low, high = min([*abilities, -4.0]), max([*abilities, 4.0])
    grid = [low + (high - low) * step / 160 for step in range(161)]
    values = [sum(_information(theta - item.difficulty) for item in report.items) for theta in grid]
    top = max(values) or 1.0
    floor = _HEIGHT - _MARGIN
    points = " ".join(
        f"{_x(theta, low, high):.1f},{floor - (floor - _MARGIN) * value / top:.1f}"
        for theta, value in zip(grid, values, strict=True)
    )
    body = [f'<polyline class="line" points="{points}"/>', f'<text x="4" y="{_MARGIN}">{top:.1f}</text>']
    for model in report.abilities:
        at = _x(model.ability, low, high)
        body.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{floor - 8}" y2="{floor}">'
            f"<title>{escape(model.model)}: ability {model.ability:.2f}</title></line>"
        )
    return _svg("Information of the set over ability; ticks are models", body, low, high, "ability (logits)")


def _information(distance: float) -> float:
    if abs(distance) > 500:
        return 0.0
    p = 1.0 / (1.0 + exp(-distance))
    return p * (1.0 - p)


def _x(value: float, low: float, high: float) -> float:
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * (value - low) / ((high - low) or 1.0)


def _svg(title: str, body: list[str], low: float, high: float, label: str) -> str:
    floor = _HEIGHT - _MARGIN
    axis = [f'<line class="axis" x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{floor}" y2="{floor}"/>']
    spacing = 10.0 ** int(log10(max(high - low, 1.0)))
    tick = int(low / spacing) * spacing
    while tick <= high:
        if tick >= low:
            axis.append(f'<text text-anchor="middle" x="{_x(tick, low, high):.1f}" y="{floor + 16}">{tick:g}</text>')
        tick += spacing
    axis.append(f'<text text-anchor="middle" x="{_WIDTH / 2}" y="{_HEIGHT - 8}">{escape(label)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}">{_STYLE}'
        f"<title>{escape(title)}</title>{''.join(axis + body)}</svg>\n"
    )
