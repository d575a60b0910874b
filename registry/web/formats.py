"""How numbers, times and intervals are written on pages: one function a kind, used as template filters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape


def percent(value: float | None) -> str:
    """``0.4321`` as ``43 %``; absent stays absent."""
    return "–" if value is None else f"{100 * value:.0f} %"


def count(value: int | None) -> str:
    """Thousands apart by a narrow space."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def estimate(mean: float | None, low: float | None, high: float | None) -> str:
    """A pass rate with its interval: ``43 % (31–56 %)``."""
    if mean is None or low is None or high is None:
        return "not enough data"
    return f"{100 * mean:.0f} % ({100 * low:.0f}–{100 * high:.0f} %)"


def seconds(value: float | None) -> str:
    """A duration with as many digits as matter."""
    if value is None:
        return "–"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 60 else f"{value / 60:.1f} min"


def moment(unix_s: float | None) -> Markup:
    """A point in time as ``<time>``: ISO for machines, minutes in UTC for people."""
    if unix_s is None:
        return Markup("–")
    at = datetime.fromtimestamp(unix_s, tz=UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), at.strftime("%Y-%m-%d %H:%M UTC"))


def digest(value: str) -> Markup:
    """The first twelve digits of a digest, the whole of it on hover."""
    return Markup('<span class="digest" title="{}">{}</span>').format(value, value[:12])


_MARKS = {"pass": "✔", "fail": "✘", "error": "?", "skipped": "–", "learnable": "◆", "saturated": "●", "broken": "✘"}


def state(value: str) -> Markup:
    """A state or outcome as a labelled pill: never by colour alone."""
    mark = _MARKS.get(value, "")
    label = value.replace("_", " ")
    return Markup('<span class="state state-{}">{}{}</span>').format(value, f"{mark} " if mark else "", escape(label))


FILTERS: dict[str, Callable[..., Any]] = {
    "percent": percent,
    "count": count,
    "seconds": seconds,
    "moment": moment,
    "digest": digest,
    "state": state,
}
