"""Small SVG charts that stand in a line or a table's cell: deterministic, without scripts, in the page's own colours.

Every chart is an image with a title for those who don't see it; pages put the same numbers beside it as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from registry.saturation.states import STATUSES

VERSION_HUES = 6
"""Weight versions are told apart by this many colours, in turn; their numbers stand beside them."""


def interval_bar(
    mean: float | None, low: float | None, high: float | None, *, width: int = 110, what: str = "90 % interval"
) -> Markup:
    """A pass rate on a 0-1 track: the interval as a band, the mean as a dot."""
    if mean is None or low is None or high is None:
        return Markup("")
    left, right, at = (4 + (width - 8) * value for value in (low, high, mean))
    title = f"{100 * mean:.0f} %, {what} {100 * low:.0f} to {100 * high:.0f} %"
    return Markup(
        f'<svg class="chart inline" role="img" width="{width}" height="14" viewBox="0 0 {width} 14">'
        f"<title>{title}</title>"
        f'<rect class="track" x="4" y="6" width="{width - 8}" height="2" rx="1"/>'
        f'<rect class="band" x="{left:.1f}" y="3" width="{max(right - left, 1):.1f}" height="8" rx="2"/>'
        f'<circle class="dot" cx="{at:.1f}" cy="7" r="3"/></svg>'
    )


def sparkline(values: Sequence[float], *, title: str, width: int = 90, height: int = 20) -> Markup:
    """Values between 0 and 1 as a line, oldest first; nothing below two points."""
    if len(values) < 2:
        return Markup("")
    last = len(values) - 1
    points = " ".join(
        f"{2 + (width - 4) * place / last:.1f},{2 + (height - 4) * (1 - value):.1f}"
        for place, value in enumerate(values)
    )
    return Markup(
        f'<svg class="chart inline" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(title)}</title><polyline class="stroke" points="{points}"/></svg>'
    )


def state_bar(counts: Mapping[str, int], *, width: int = 160) -> Markup:
    """Tasks by state as one bar, in the order in which tasks pass through them."""
    total = sum(counts.values())
    if not total:
        return Markup("")
    present = [status for status in STATUSES if counts.get(status)]
    title = ", ".join(f"{counts[status]} {status.replace('_', ' ')}" for status in present)
    parts, x = [], 0.0
    for status in present:
        wide = width * counts[status] / total
        parts.append(f'<rect class="fill-{status}" x="{x:.1f}" y="2" width="{max(wide - 1, 0.5):.1f}" height="10"/>')
        x += wide
    return Markup(
        f'<svg class="chart inline" role="img" width="{width}" height="14" viewBox="0 0 {width} 14">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )


def token_strip(spans: Sequence[tuple[int | None, int]], *, title: str, width: int = 620) -> Markup:
    """Tokens in their order, spans of (weight version, tokens); `None` is what the model did not generate."""
    total = sum(tokens for _, tokens in spans)
    if not total:
        return Markup("")
    parts, x = [], 0.0
    for version, tokens in spans:
        wide = width * tokens / total
        kind = "track" if version is None else f"version-{version % VERSION_HUES}"
        said = "not generated" if version is None else f"version {version}"
        parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="0" width="{max(wide, 0.6):.1f}" height="12">'
            f"<title>{tokens} tokens, {said}</title></rect>"
        )
        x += wide
    return Markup(
        f'<svg class="chart strip" role="img" width="{width}" height="12" '
        f'viewBox="0 0 {width} 12" preserveAspectRatio="none"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
