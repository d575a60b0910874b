"""A task's MCP server on both back ends, as a service and in the agent's box: tools listed, called for real, and lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envsdk.episode.agents import OracleAgent
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import ContainerSpec, McpServer, ServiceSpec, Task
from tests.fakes.back_ends import BACK_ENDS
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.tasks import script_task

pytestmark = pytest.mark.asyncio(loop_scope="module")
SOURCE = Path(__file__).with_name("mcp_server.py").read_text(encoding="utf-8")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


def task_in(root: Path, *servers: McpServer, command: str = 'exec python3 -c "$SERVER"') -> Task:
    task = script_task(root)
    service = ServiceSpec(name="notes", image=BASE_IMAGE, command=command, env={"SERVER": SOURCE}, port=8000)
    servers = servers or (McpServer(name="notes", transport="streamable-http", url="http://notes:8000/mcp"),)
    container = ContainerSpec(image=BASE_IMAGE, network="internal", mcp_servers=servers)
    spec = task.spec.model_copy(update={"container": container, "services": (service,)})
    return task.model_copy(update={"spec": spec})


def call(name: object, **arguments: object) -> str:
    return f"I call:\n<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


async def play(provider: SandboxProvider, task: Task, *replies: str) -> tuple[EpisodeRecord, ScriptedPolicy]:
    policy = ScriptedPolicy(replies)
    return await run_episode(task, ConversationAgent(policy), provider), policy


async def test_tools_are_listed_and_called_between_commands(provider: SandboxProvider, tmp_path: Path) -> None:
    replies = (call("put", key="a", text="42"), call("get", key="a"), "echo 42 > /app/total.txt", "done")
    record, policy = await play(provider, task_in(tmp_path), *replies)
    assert policy.heard[0][0].role == "system"
    assert '"name": "put"' in policy.heard[0][0].content
    assert [turn.observation for turn in record.turns[:2]] == ["kept\n[tool call done]", "42\n[tool call done]"]
    assert record.outcome.reward == 1.0, record.facts
    assert record.facts["tool_calls"] == {"unusable_in_a_row": 0, "last_valid": True}
    assert "POST / mcp" in record.service_logs["notes"].replace("/mcp", "/ mcp")


async def test_what_is_wrong_with_a_call_is_told_and_three_in_a_row_are_the_models_end(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    bad = ("<tool_call>{put}</tool_call>", call("push", key="a"), call("put", key=1, text="x"))
    record, _ = await play(provider, task_in(tmp_path), *bad)
    said = [turn.observation for turn in record.turns]
    assert 'one JSON object with "name"' in said[0]
    assert "there are: put, get, fail, die" in said[1]
    assert "$.key" in said[2]
    assert (record.outcome.outcome_class, record.outcome.cause) == ("model_failure", "tool_call_errors"), record.facts


async def test_a_tool_that_fails_is_an_answer_like_any_other(provider: SandboxProvider, tmp_path: Path) -> None:
    record, _ = await play(provider, task_in(tmp_path), call("fail"), "done")
    assert record.turns[0].observation == "it failed\n[tool call failed]"
    assert record.outcome.cause == "finished"


async def test_a_server_that_is_gone_is_the_machinerys(provider: SandboxProvider, tmp_path: Path) -> None:
    record, _ = await play(provider, task_in(tmp_path), call("die"))
    assert record.outcome.outcome_class == "infra_failure", record.facts
    assert (record.facts["exception"]["kind"], record.facts["ended_by"]) == ("mcp_lost", "exception")
    assert record.outcome.reward is None


async def test_a_server_that_speaks_something_else_fails_the_start(provider: SandboxProvider, tmp_path: Path) -> None:
    record, _ = await play(provider, task_in(tmp_path, command="exec python3 -m http.server 8000"), "done")
    assert record.outcome.outcome_class == "infra_failure", record.facts
    assert record.facts["exception"]["kind"] == "mcp_unreachable"
    assert "notes" in record.facts["exception"]["note"]


STDIO = McpServer(name="near", transport="stdio", command="python3", args=("-c", SOURCE, "stdio"))


async def test_a_server_in_the_agents_box_is_called_over_its_standard_input(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    replies = (
        *(call("put", key="a", text="x" * 100_000), call("get", key="a")),
        *("echo 42 > /app/total.txt; pgrep -c -u agent -f [c]onverse", "done"),
    )
    record, policy = await play(provider, task_in(tmp_path, STDIO), *replies)
    said = [turn.observation for turn in record.turns]
    assert '"name": "put"' in policy.heard[0][0].content
    assert said[0] == "kept\n[tool call done]"
    assert said[1].startswith("xxxx")
    assert said[2].startswith("1"), said[2]
    assert record.outcome.reward == 1.0, record.facts


@pytest.mark.parametrize("killer", [call("die"), "pkill -f [c]onverse"])
async def test_an_agent_that_ends_its_own_server_gets_failed_calls_and_its_grade(
    provider: SandboxProvider, tmp_path: Path, killer: str
) -> None:
    replies = (killer, call("get", key="a"), "echo 42 > /app/total.txt", "done")
    record, _ = await play(provider, task_in(tmp_path, STDIO), *replies)
    assert record.turns[1].observation.endswith("[tool call failed]")
    assert "'near' is gone" in record.turns[1].observation
    assert (record.outcome.outcome_class, record.outcome.reward) == ("model_success", 1.0), record.facts


async def test_a_command_that_is_no_server_fails_the_start_with_its_last_words(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    server = McpServer(name="near", transport="stdio", command="sh", args=("-c", "echo no such module >&2; exit 7"))
    record, _ = await play(provider, task_in(tmp_path, server), "done")
    assert record.outcome.outcome_class == "infra_failure", record.facts
    assert record.facts["exception"]["kind"] == "mcp_unreachable"
    assert "it ended with 7; it wrote: no such module" in record.facts["exception"]["note"]


async def test_a_command_that_prints_for_ever_is_ended_and_told(provider: SandboxProvider, tmp_path: Path) -> None:
    server = McpServer(name="near", transport="stdio", command="yes")
    record, _ = await play(provider, task_in(tmp_path, server), "done")
    assert record.outcome.outcome_class == "infra_failure", record.facts
    assert record.facts["exception"]["kind"] == "mcp_unreachable"
    assert "faster than they could be read" in record.facts["exception"]["note"]


async def test_a_server_that_is_no_service_is_refused_and_agents_without_tools_do_not_mind(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    task = task_in(tmp_path, McpServer(name="away", url="http://elsewhere:80/sse"))
    record, _ = await play(provider, task, "done")
    assert record.facts["exception"]["kind"] == "mcp_unsupported"
    assert record.outcome.outcome_class == "infra_failure"
    assert (await run_episode(task, OracleAgent(), provider)).outcome.reward == 1.0
