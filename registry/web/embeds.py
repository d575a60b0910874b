"""Badges and charts as SVG files of their own, for READMEs and reports: colours stand inside, nothing else is loaded.

``metric=`` says what is shown; ``theme=`` is ``light``, ``dark``, or left out to follow the reader's system.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response

from envsdk.errors import UsageError
from registry.local import LocalRegistry
from registry.web import plots
from registry.web.caching import with_etag
from registry.web.formats import estimate, words
from registry.web.membership import shown_lineage, summaries
from registry.web.pages import revision, task

Theme = Annotated[Literal["auto", "light", "dark"], Query()]
_LIGHT = {"ink": "#1f2328", "quiet": "#5b6168", "line": "#d8d3cb", "accent": "#0b5c8a", "ground": "#fdfcfa"}
_DARK = {"ink": "#e7e5e0", "quiet": "#a3a8ae", "line": "#3d434b", "accent": "#7cc0ea", "ground": "#16181b"}
_RULES = (
    "svg{{background:{ground};font:11px system-ui,sans-serif}}text{{fill:{quiet}}}.axis{{stroke:{line}}}"
    ".band,.zone{{fill:{accent};opacity:.16}}.whisker{{stroke:{accent};opacity:.5}}.dot{{fill:{accent}}}"
    ".mark{{stroke:{quiet};stroke-dasharray:3 3}}.stroke{{fill:none;stroke:{accent};stroke-width:1.6}}"
    ".label{{fill:{ground}}}.left{{fill:{quiet}}}.right{{fill:{accent}}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CHARACTER = 6.6
"""Width of a character of a badge's 11-pixel text, on average."""


SetBadge = Literal["size", "pass_rate", "states"]
SetChart = Literal["pass_rate", "information"]
TaskBadge = Literal["pass_rate", "state"]


def routes(registry: LocalRegistry) -> APIRouter:
    """Badge and chart of a set's latest revision, and of a task."""
    router = APIRouter()
    reading = registry.database.reading

    @router.get("/sets/{name}/badge.svg")
    def set_badge(request: Request, name: str, metric: SetBadge = "size", theme: Theme = "auto") -> Response:
        """A badge of a task set: its size, its mean pass rate, or its states."""
        with reading() as session:
            return _svg(request, _set_badge(session, name, metric), theme)

    @router.get("/sets/{name}/chart.svg")
    def set_chart(request: Request, name: str, metric: SetChart = "pass_rate", theme: Theme = "auto") -> Response:
        """A task set's pass rates with their intervals, or its information over ability."""
        with reading() as session:
            return _svg(request, _set_chart(session, name, metric), theme)

    @router.get("/tasks/{slug}/badge.svg")
    def task_badge(request: Request, slug: str, metric: TaskBadge = "pass_rate", theme: Theme = "auto") -> Response:
        """A badge of a task: its pass rate for the reference policy, or its state."""
        with reading() as session:
            return _svg(request, _task_badge(session, slug, metric), theme)

    @router.get("/tasks/{slug}/chart.svg")
    def task_chart(request: Request, slug: str, theme: Theme = "auto") -> Response:
        """A task's pass rate by weight version of the reference policy, with 95 % intervals."""
        with reading() as session:
            return _svg(request, _task_chart(session, slug), theme)

    return router


def _set_badge(session: Session, name: str, metric: SetBadge) -> str:
    found = revision.find(session, name, None)
    lineage, _ = shown_lineage(session, "")
    summary = summaries(session, [found.id], lineage)[found.id]
    said = {
        "size": f"{found.size:,} tasks",
        "pass_rate": estimate(summary.p, summary.low, summary.high),
        "states": ", ".join(f"{number} {words(status)}" for status, number in summary.states.items()),
    }
    return _badge(f"{name}@{found.number}", said[metric])


def _set_chart(session: Session, name: str, metric: SetChart) -> str:
    found = revision.find(session, name, None)
    lineage, policy = shown_lineage(session, "")
    if metric == "pass_rate":
        chart = plots.rate_spread(
            [(mean, low, high) for mean, low, high in revision.rates(session, found.id, lineage)],
            title=f"Pass rates of {name}@{found.number} for {policy}, with 90 % intervals",
        )
    else:
        fitted = revision.calibration(session, found.id)
        chart = plots.information(
            fitted["difficulties"] if fitted else (),
            abilities=[(one["policy"], one["theta"]) for one in fitted["abilities"]] if fitted else (),
            title=f"Information of {name}@{found.number} over ability",
        )
    return _some(chart, name)


def _task_badge(session: Session, slug: str, metric: TaskBadge) -> str:
    found = task.find(session, slug)
    standing = task.standing_of(session, found.id, shown_lineage(session, "")[0])
    met = standing is not None and standing.n > 0
    said = {
        "pass_rate": estimate(standing.mean, standing.low, standing.high) if standing and met else "not measured",
        "state": words(standing.status) if standing else "draft",
    }
    return _badge(found.slug, said[metric])


def _task_chart(session: Session, slug: str) -> str:
    found = task.find(session, slug)
    lineage, policy = shown_lineage(session, "")
    chart = plots.rate_history(
        [
            (row["weight_version"], row["passes"] / row["n"], row["low"], row["high"])
            for row in task.by_version(session, found.id, lineage)
        ],
        x_label="weight version",
        title=f"Pass rate of {slug} by weight version of {policy}, with 95 % intervals",
    )
    return _some(chart, slug)


def _some(chart: str, name: str) -> str:
    if not chart:
        raise UsageError(f"{name} has not been measured", code="not_measured", hint="calibrate it first")
    return chart


def _svg(request: Request, drawn: str, theme: str) -> Response:
    light, dark = _RULES.format(**_LIGHT), _RULES.format(**_DARK)
    style = {"light": light, "dark": dark, "auto": f"{light}@media (prefers-color-scheme:dark){{{dark}}}"}[theme]
    head, rest = drawn.split(">", 1)
    body = f'{head} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{rest}'
    response = Response(body, media_type="image/svg+xml", headers={"Content-Security-Policy": _POLICY})
    return with_etag(request, response)


def _badge(left: str, right: str) -> str:
    left_wide, right_wide = (round(_CHARACTER * len(text) + 12) for text in (left, right))
    total = left_wide + right_wide
    said = escape(f"{left}: {right}")
    return (
        f'<svg role="img" width="{total}" height="20" viewBox="0 0 {total} 20"><title>{said}</title>'
        f'<rect class="left" width="{left_wide}" height="20"/>'
        f'<rect class="right" x="{left_wide}" width="{right_wide}" height="20"/>'
        f'<text class="label" x="{left_wide / 2}" y="14" text-anchor="middle">{escape(left)}</text>'
        f'<text class="label" x="{left_wide + right_wide / 2}" y="14" text-anchor="middle">{escape(right)}</text></svg>'
    )
