"""How numbers, times and intervals are written on pages: one function a kind, used as template filters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from registry.calibration.intervals import wilson


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


def rate(passes: int, trials: int) -> str:
    """Counts with their Wilson interval: ``12/64 (19 %, 95 % CI 11–30 %)``."""
    if not trials:
        return "not enough data"
    low, high = wilson(passes, trials)
    return f"{passes}/{trials} ({100 * passes / trials:.0f} %, 95 % CI {100 * low:.0f}–{100 * high:.0f} %)"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def evidence(value: float) -> str:
    """An e-value: with one decimal up to a thousand, then as a power of ten."""
    if value < 1_000:
        return f"{value:.1f}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits} × 10{str(int(power)).translate(_RAISED)}"


def seconds(value: float | None) -> str:
    """A duration with as many digits as matter."""
    if value is None:
        return "–"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 5_400 else f"{value / 3_600:.1f} h"


def moment(unix_s: float | None) -> Markup:
    """A point in time: minutes in UTC, and how long ago that is."""
    return Markup('{} <span class="ago">{}</span>').format(instant(unix_s), ago(unix_s)) if unix_s else Markup("–")


def day(unix_s: float | None) -> Markup:
    """A point in time where there is little room: its day, how long ago, and the rest on hover."""
    if not unix_s:
        return Markup("–")
    at = datetime.fromtimestamp(unix_s, tz=UTC)
    return Markup('<time datetime="{0}" title="{0}">{1}</time> <span class="ago">{2}</span>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d"), ago(unix_s)
    )


def instant(unix_s: float | None) -> Markup:
    """A point in time as ``<time>``: ISO for machines, minutes in UTC for people. For pages that never change."""
    if not unix_s:
        return Markup("–")
    at = datetime.fromtimestamp(unix_s, tz=UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC")
    )


_STEPS = ((365.25 * 86_400, "year"), (30.44 * 86_400, "month"), (86_400.0, "day"), (3_600.0, "hour"))


def ago(unix_s: float, *, now: float | None = None) -> str:
    """How long ago, in its largest whole unit; hours at the least, so that a page stays the same for a while."""
    passed = (time.time() if now is None else now) - unix_s
    for step, unit in _STEPS:
        number = int(passed // step)
        if number >= 1:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "in the last hour" if passed > -60 else "in the future"


def digest(value: str) -> Markup:
    """The first twelve digits of a digest, the whole of it on hover."""
    return Markup('<span class="digest" title="{}">{}</span>').format(value, value[:12])


def episode(value: str) -> Markup:
    """An episode's name where there is little room: both its ends, since those of one run begin alike."""
    if len(value) <= 16:
        return Markup('<span class="digest">{}</span>').format(value)
    return Markup('<span class="digest" title="{}">{}…{}</span>').format(value, value[:6], value[-8:])


def sentence(value: str) -> str:
    """A message as a heading: its first letter is a capital one."""
    return value[:1].upper() + value[1:]


_MARKS = {"pass": "✔", "fail": "✘", "error": "?", "skipped": "–", "learnable": "◆", "saturated": "●", "broken": "✘"}
_MARKS |= {"done": "✔", "failed": "✘", "running": "▸", "published": "✔", "too_hard": "▲", "saturating": "◐"}


def words(code: str) -> str:
    """A code as words: ``turn_limit`` as ``turn limit``."""
    return code.replace("_", " ")


def level(values: Mapping[str, Any]) -> str:
    """A family's level: ``words = 4, accents = no``."""
    said = [f"{knob} = {_plainly(value)}" for knob, value in values.items()]
    return ", ".join(said) or "the only one"


def _plainly(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def state(value: str) -> Markup:
    """A state or outcome as a labelled pill: never by colour alone."""
    mark = _MARKS.get(value, "")
    label = words(value)
    return Markup('<span class="state state-{}">{}{}</span>').format(value, f"{mark} " if mark else "", escape(label))


FILTERS: dict[str, Callable[..., Any]] = {
    "percent": percent,
    "count": count,
    "seconds": seconds,
    "moment": moment,
    "instant": instant,
    "evidence": evidence,
    "day": day,
    "words": words,
    "level": level,
    "digest": digest,
    "episode": episode,
    "sentence": sentence,
    "state": state,
}
