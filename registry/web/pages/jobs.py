"""Background jobs: started from a page, watched while they run, cancelled.

A page of a job that runs brings itself up to date with scripts (`static/live.js`) and by reloading without.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from starlette.requests import Request

from envsdk.errors import UsageError
from envsdk.policies.find import known_policy
from registry.api.guard import Guard
from registry.db import Job
from registry.jobs import ENDED, JobView, cancel, enqueue, find_job, find_open, view
from registry.local import LocalRegistry
from registry.query import parse
from registry.revisions import find_revision
from registry.web.forms import Sent, add_form
from registry.web.membership import shown_lineage
from registry.web.render import add_page, tasks_url

NEWEST = 50
_UNHEARD_S = 15.0


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The list of jobs, one job, and the forms that start and cancel them."""

    def every_job(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            jobs = [view(job) for job in session.scalars(select(Job).order_by(Job.id.desc()).limit(NEWEST))]
        return {"title": "Jobs", "jobs": [_shown(job) for job in jobs], "live": any(map(_is_live, jobs))}

    def one_job(request: Request) -> Mapping[str, Any]:
        number = request.path_params["number"]
        with registry.database.reading() as session:
            job = find_job(session, int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0)
        return {"title": f"Job {job.id}", "job": _shown(job), "live": _is_live(job)}

    def calibrate(sent: Sent) -> str:
        q = sent.fields.get("q", "")
        parse(q)
        return start("calibrate", {"q": q, "policy": _policy(sent.fields)})

    def refresh(sent: Sent) -> str:
        fields = sent.fields
        name = fields.get("set", "").strip()
        lineage = fields.get("lineage", "").strip()
        with registry.database.reading() as session:
            find_revision(session, name)
            shown_lineage(session, lineage)
        policy = _policy(fields) if fields.get("policy", "").strip() else ""
        given = {"set": name, "lineage": lineage, "policy": policy}
        return start("refresh", {key: value for key, value in given.items() if value})

    def start(kind: str, arguments: dict[str, Any]) -> str:
        with registry.database.writing() as session:
            # Pressing a button twice asks for one job.
            job = find_open(session, kind, arguments) or enqueue(session, kind, arguments)
        return f"/jobs/{job.id}"

    def stop(sent: Sent) -> str:
        with registry.database.writing() as session:
            job = cancel(session, int(sent.request.path_params["number"]))
        return f"/jobs/{job.id}"

    router = APIRouter()
    add_page(router, "/jobs", "jobs.html", every_job)
    add_page(router, "/jobs/{number}", "job.html", one_job)
    add_form(router, "/jobs/calibrate", guard, scope="jobs", act=calibrate)
    add_form(router, "/jobs/refresh", guard, scope="jobs", act=refresh)
    add_form(router, "/jobs/{number:int}/cancel", guard, scope="jobs", act=stop)
    return router


def _policy(fields: Mapping[str, str]) -> str:
    policy = fields.get("policy", "").strip()
    if not policy:
        raise UsageError(
            "no policy was named", code="unknown_policy", hint="for example vllm:smollm2, or openai:URL#MODEL"
        )
    known_policy(policy)
    return policy


def _is_live(job: JobView) -> bool:
    return job.state not in ENDED


def _shown(job: JobView) -> dict[str, Any]:
    code, _, message = job.error.partition(": ")
    done, total = _progress(job)
    return asdict(job) | {
        "ended": job.state in ENDED,
        "about": _about(job),
        "about_url": _about_url(job),
        "done": done,
        "total": total,
        "episodes": job.progress.get("episodes"),
        "left_s": job.progress.get("left_s"),
        "error_code": code if message else "",
        "error_message": message or job.error,
        "unheard": job.state == "queued" and time.time() - job.created_at > _UNHEARD_S,
    }


def _progress(job: JobView) -> tuple[int, int]:
    """What is done of how much, in tasks or replacements; (0, 0) where nobody has said yet."""
    told = job.progress
    if job.kind == "calibrate":
        return int(told.get("tasks_done", 0)), int(told.get("tasks", 0))
    return int(told.get("replacements", 0)), int(told.get("wanted", 0))


def _about(job: JobView) -> str:
    if job.kind == "calibrate":
        return str(job.arguments.get("q") or "every task")
    return str(job.arguments.get("set", ""))


def _about_url(job: JobView) -> str:
    return (
        tasks_url(_about(job) if job.arguments.get("q") else "") if job.kind == "calibrate" else f"/sets/{_about(job)}"
    )
