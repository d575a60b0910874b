"""What tests of the checks share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.sandbox import FakeProvider


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    opened = FakeProvider()
    yield opened
    assert opened.open_count == 0, "a box was left open"
    await opened.close()
