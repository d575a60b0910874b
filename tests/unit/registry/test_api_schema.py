"""The API against its own description: whatever a request holds, no answer is a failure of the server."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from registry.api import guard
from registry.local import LocalRegistry
from registry.tokens import SCOPES, create_token
from registry.web.app import create_app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("api")
    with LocalRegistry(f"sqlite:///{folder}/registry.sqlite") as registry:
        yield registry


@pytest.fixture(scope="module")
def headers(opened):
    with opened.database.writing() as session:
        return {"Authorization": f"Bearer {create_token(session, 'test', scopes=SCOPES).secret}"}


def test_every_request_gets_an_envelope_and_no_failure(opened, headers, monkeypatch):
    monkeypatch.setattr(guard, "WRITES_A_MINUTE", 10**9)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", create_app(opened)).include(path_regex="^/api")
    asked = set()
    for operation in (found.ok() for found in schema.get_all_operations()):

        @given(case=operation.as_strategy())
        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
        def holds(case):
            answer = case.call(headers=headers)
            assert answer.status_code < 500, answer.text
            assert not answer.content or "errors" in answer.json()

        holds()
        asked.add(operation.label)
    assert len(asked) >= 12
