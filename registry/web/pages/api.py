"""The API as a page: every endpoint with its parameters, from the same description that ``/api/openapi.json`` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request

from registry.web.render import add_page


def routes(app: FastAPI) -> APIRouter:
    """The page, over everything that ``app`` serves."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        groups: dict[str, list[dict[str, Any]]] = {}
        for path, methods in app.openapi()["paths"].items():
            for method, operation in methods.items():
                group = (operation.get("tags") or ["other"])[0]
                groups.setdefault(group, []).append(_endpoint(path, method, operation))
        return {"title": "API", "groups": groups}

    router = APIRouter()
    add_page(router, "/api", "api.html", view)
    return router


def _endpoint(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "method": method.upper(),
        "path": path,
        "what": (operation.get("description") or operation.get("summary", "")).replace("`", ""),
        "token": bool(operation.get("security")),
        "parameters": [
            {"name": one["name"], "in": one["in"], "required": one.get("required", False)}
            for one in operation.get("parameters", ())
        ],
        "body": "requestBody" in operation,
    }
