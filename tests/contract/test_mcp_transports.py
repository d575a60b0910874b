"""A server of the protocol's own package, over SSE and streamable HTTP, through a real sandbox's door.

The sandbox shares the machine's network, so that what listens here is a port inside it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.episode.toolbox import Toolbox, open_toolbox
from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.services import listening_ports
from envsdk.spec.model import ContainerSpec, McpServer, ServiceSpec, Task
from tests.fakes.tasks import script_task

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.bubblewrap]
SCRIPT = Path(__file__).with_name("official_mcp_server.py")
KINDS = {"sse": ("sse", "/sse"), "stream": ("streamable-http", "/mcp"), "json": ("http", "/mcp")}
FIRST_PORT = 18731


class Services:
    """The part of a `ServiceGroup` that tools ask for: each service's sandbox."""

    def __init__(self, box: Any) -> None:
        self._box = box

    def sandbox(self, name: str) -> Any:
        assert name == "notes"
        return self._box


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def box() -> AsyncIterator[Any]:
    provider: Any = open_provider("bubblewrap")
    image = await provider.ensure_image(None, BASE_IMAGE)
    yield await provider.start(SandboxSpec(image=image, network="public"), 60.0)
    await provider.close()


@pytest.fixture(params=[*KINDS])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[McpServer, subprocess.Popen[bytes]]]:
    """A running server, and how a task declares it."""
    kind = request.param
    transport, path = KINDS[kind]
    port = FIRST_PORT + [*KINDS].index(kind)
    process = subprocess.Popen([sys.executable, str(SCRIPT), kind, str(port)], stderr=subprocess.DEVNULL)
    yield McpServer(name="notes", transport=transport, url=f"http://notes:{port}{path}"), process
    process.kill()
    process.wait()


async def until_listening(box: Any, server: McpServer) -> None:
    port = int(str(server.url).rpartition(":")[2].partition("/")[0])
    async with asyncio.timeout(60):
        while port not in await listening_ports(box):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # the kernel tells nobody when a port is listened at


def task_with(root: Path, server: McpServer) -> Task:
    task = script_task(root)
    container = ContainerSpec(image=BASE_IMAGE, network="internal", mcp_servers=(server,))
    spec = task.spec.model_copy(
        update={"container": container, "services": (ServiceSpec(name="notes", image=BASE_IMAGE),)}
    )
    return task.model_copy(update={"spec": spec})


async def said(tools: Toolbox, call: str) -> tuple[str, bool]:
    answer = await tools.call(call)
    return answer.text, answer.failed


async def test_tools_of_the_official_server_are_listed_called_and_lost_over_each_transport(
    box: Any, server: tuple[McpServer, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    declared, process = server
    await until_listening(box, declared)
    services: Any = Services(box)
    async with open_toolbox(task_with(tmp_path, declared), services, None) as tools:
        assert set(tools.tools) == {"put", "get", "fail"}
        assert tools.tools["put"].schema["required"] == ["key", "text"]
        texts = ["x" * 200_000, "a\u2028b", '"}\n\n: no event']
        for text in texts:
            assert await said(tools, _call("put", key="k", text=text)) == ("kept", False)
            assert await said(tools, _call("get", key="k")) == (text, False)
        several = await asyncio.gather(*(said(tools, _call("get", key=str(n))) for n in range(8)))
        assert several == [("nothing", False)] * 8
        text, failed = await said(tools, _call("fail"))
        assert failed
        assert "it failed" in text
        process.kill()
        process.wait()
        with pytest.raises(SandboxError) as caught:
            await tools.call(_call("get", key="k"))
        assert caught.value.code == "mcp_lost"


def _call(name: str, **arguments: str) -> str:
    return json.dumps({"name": name, "arguments": arguments})
