"""Harbor's own task directories on the bundled back ends: compose services, a verifier's own box, several steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envsdk.episode.agents import NoopAgent, OracleAgent
from envsdk.episode.run import run_episode
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOX = "ARG BASE=python:3.12-slim\nFROM ${BASE}\nWORKDIR /app\n"
REWARD = 'if [ "$(cat /app/total.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=5).read().decode())"
SERVER = """import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{os.environ['TOTAL']}".encode())

http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
COMPOSE = """
services:
  main:
    depends_on:
      api: {condition: service_healthy}
    environment: ["API=http://api:8001/"]
  api:
    build: {context: ./api}
    restart: unless-stopped
    command: ["8001"]
    environment: {TOTAL: "${NO_SUCH_NAME_HERE:-42}"}
    depends_on: [store]
    expose: ["8001"]
    healthcheck:
      test: ["CMD", "python3", "-c", "import urllib.request as u; u.urlopen('http://store:8002/')"]
      interval: 1s
      timeout: 5s
      retries: 20
  store:
    build: ./api
    command: "8002"
    environment: [TOTAL=7]
    expose: [8002]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in {"environment/Dockerfile": BOX, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    return root


async def rewards(root: Path, provider: SandboxProvider) -> list[float | None]:
    """What the oracle and an agent that does nothing earn."""
    task = load_task(root)
    return [(await run_episode(task, agent, provider)).outcome.reward for agent in (OracleAgent(), NoopAgent())]


async def test_services_of_a_compose_file_run_beside_the_agent(provider: SandboxProvider, tmp_path: Path) -> None:
    root = write(
        tmp_path / "composed",
        {
            "task.toml": 'version = "1.0"\n',
            "instruction.md": "Write what $API says to /app/total.txt.\n",
            "environment/docker-compose.yaml": COMPOSE,
            "environment/api/Dockerfile": f'{BOX}COPY server.py /server.py\nENTRYPOINT ["python3", "/server.py"]\n',
            "environment/api/server.py": SERVER,
            "tests/test.sh": f"#!/bin/sh\n{REWARD}",
            "solution/solve.sh": f"#!/bin/sh\npython3 -c '{FETCH}' \"$API\" > /app/total.txt\n",
        },
    )
    assert await rewards(root, provider) == [1.0, 0.0]


async def test_a_verifier_runs_in_the_environment_that_it_declares(provider: SandboxProvider, tmp_path: Path) -> None:
    toml = """schema_version = "1.4"
artifacts = ["/app/total.txt"]
[verifier]
environment_mode = "separate"
[verifier.environment]
workdir = "/srv"
env = {WANTED = "42"}
"""
    judge = '#!/bin/sh\n[ "$PWD" = /srv ] && [ -f /judge ] && [ "$(cat /app/total.txt)" = "$WANTED" ] && r=1\n'
    root = write(
        tmp_path / "apart",
        {
            "task.toml": toml,
            "instruction.md": "Write 42 to /app/total.txt.\n",
            "tests/Dockerfile": f"{BOX}RUN mkdir -p /srv && touch /judge\n",
            "tests/test.sh": f"{judge}echo ${{r:-0}} > /logs/verifier/reward.txt\n",
            "solution/solve.sh": "#!/bin/sh\necho 42 > /app/total.txt\n",
        },
    )
    assert await rewards(root, provider) == [1.0, 0.0]


async def test_each_step_has_its_files_checks_and_variables(provider: SandboxProvider, tmp_path: Path) -> None:
    toml = """schema_version = "1.1"
[[steps]]
name = "first"
min_reward = 1.0
[[steps]]
name = "second"
[steps.verifier.env]
WANTED = "42 and 7"
[steps.healthcheck]
command = "test -f /app/more.txt && test ! -e /app/setup.sh"
interval_sec = 1
"""
    judge = (
        '#!/bin/sh\n[ "$(cat /app/total.txt)" = "${WANTED:-42}" ] && r=1\necho ${r:-0} > /logs/verifier/reward.txt\n'
    )
    root = write(
        tmp_path / "steps",
        {
            "task.toml": toml,
            "tests/test.sh": judge,
            "steps/first/instruction.md": "Write 42 to /app/total.txt.\n",
            "steps/first/solution/solve.sh": "#!/bin/sh\necho 42 > /app/total.txt\n",
            "steps/second/instruction.md": "Add what /app/more.txt says.\n",
            "steps/second/workdir/setup.sh": "echo ' and 7' > /app/more.txt\n",
            "steps/second/solution/solve.sh": '#!/bin/sh\necho "42$(cat more.txt)" > /app/total.txt\n',
        },
    )
    record = await run_episode(load_task(root), OracleAgent(), provider)
    assert record.facts["verifier"]["rewards"] == {"reward": 1.0, "first": 1.0, "second": 1.0}
    assert (await run_episode(load_task(root), NoopAgent(), provider)).outcome.reward == 0.0
