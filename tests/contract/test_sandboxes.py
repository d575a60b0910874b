"""Both bundled back ends against the shipped suite, one test a check, on the project's base image."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import Sandbox, SandboxProvider, SandboxSpec
from envsdk.sandboxes.conformance import CHECKS, run
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


@pytest.mark.parametrize("check", CHECKS)
async def test_back_end_passes(provider: SandboxProvider, check: str) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    (finding,) = await run(provider, image, [check])
    assert finding.outcome == "pass", finding.why


async def test_provider_and_sandbox_satisfy_the_protocols(provider: SandboxProvider) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    box = await provider.acquire(SandboxSpec(image=image))
    assert isinstance(provider, SandboxProvider)
    assert isinstance(box, Sandbox)
    await box.close()
