"""ledger-api: find a number through a REST API that stands beside the agent's box.

A service ``api``, built from the same base image with the standard library's HTTP server, answers on a network of its
own. It makes up each world of accounts from the world's number in the path, so that one image serves every draw.
Levels: ``hops``: how many times the question goes from an account to its manager; ``pages``: the balance is the
account's own, or the sum of its entries, which come in pages; ``faults``: some requests are first answered with 503.
The verifier compares the number in ``/app/answer.txt``.
"""

from __future__ import annotations

import random
from typing import Any

from envsdk import AgentSpec, Budget, ContainerSpec, Draw, Example, ServiceSpec, family, verifier
from envsdk.sandboxes.base import Limits
from envsdk.spec.model import HealthCheck

SERVER = '''"""A ledger of made-up worlds: GET /<world>/accounts/<name> and /<world>/accounts/<name>/entries?page=N."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMES = "ada alan barbara claude donald edsger fran grace hedy ida john kay leslie margaret niklaus ole".split()


def number(*parts):
    """A number made of its parts: the same everywhere."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:6], "big")


def account(world, name):
    """Balance in whole units and the manager's name, which is never the account's own."""
    others = [other for other in NAMES if other != name]
    return {"name": name, "balance": number(world, name) % 9000 + 100, "manager": others[number(world, name, "m") % 15]}


def entries(world, name):
    """Amounts, some of them negative."""
    return [number(world, name, "e", n) % 400 - 150 for n in range(5 + number(world, name, "n") % 30)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    failed = set()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        parts = path.strip("/").split("/")
        if parts == ["health"]:
            return self.reply(200, {"ok": True})
        world = parts[0]
        if world.startswith("f") and self.path not in self.failed and number(self.path) % 3 == 0:
            self.failed.add(self.path)
            return self.reply(503, {"error": "try again"})
        if len(parts) == 3 and parts[1] == "accounts" and parts[2] in NAMES:
            return self.reply(200, account(world, parts[2]))
        if len(parts) == 4 and parts[1] == "accounts" and parts[2] in NAMES and parts[3] == "entries":
            page = int(query.partition("page=")[2] or 1)
            rows = entries(world, parts[2])
            more = f"?page={page + 1}" if len(rows) > page * 10 else None
            return self.reply(200, {"entries": rows[page * 10 - 10 : page * 10], "next": more})
        return self.reply(404, {"error": "no such thing"})

    def reply(self, status, value):
        body = json.dumps(value).encode() + b"\\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
'''

GET = '''#!/usr/bin/env python3
"""get URL: print what it answers."""

import sys
import urllib.error
import urllib.request

try:
    sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code} {error.read().decode()}")
'''

DOCKERFILE = """ARG BASE=python:3.12-slim
FROM ${BASE}
RUN id agent >/dev/null 2>&1 || useradd --create-home agent
COPY get /usr/local/bin/get
RUN chmod 755 /usr/local/bin/get
WORKDIR /app
RUN chown -R agent:agent /app
"""

SERVICE_DOCKERFILE = """ARG BASE=python:3.12-slim
FROM ${BASE}
COPY server.py /srv/server.py
CMD ["python3", "/srv/server.py"]
"""


@verifier(kind="state")
def answers(state: Any, *, expected: int) -> float:
    """1 where ``/app/answer.txt`` is the expected number, white space at its ends aside."""
    try:
        text = state.read("/app/answer.txt").decode("ascii").strip()
    except (FileNotFoundError, ValueError):  # a decoding error is a ValueError
        return 0.0
    return float(text == str(expected))


@family(
    verifier=answers,
    levels={"hops": (0, 1, 3, 12), "pages": (False, True), "faults": (False, True)},
    agent=AgentSpec(
        protocol="shell",
        system="You answer questions with a shell. Reply with one command at a time, and with done when all is done. "
        "The command get URL prints what a URL answers.",
        examples=(
            Example(
                user="Accounts are at http://api:8000/w1/accounts/NAME, for example http://api:8000/w1/accounts/zoe. "
                "What is the balance of the account zoe? Write the number to /app/answer.txt.",
                assistant="get http://api:8000/w1/accounts/zoe",
            ),
            Example(
                user='{"name": "zoe", "balance": 42, "manager": "max"}\n[exit code 0]',
                assistant="echo 42 > /app/answer.txt",
            ),
            Example(user="[exit code 0]", assistant="done"),
        ),
        stop=("\n",),
    ),
    container=ContainerSpec(limits=Limits(cpus=1, memory_mib=256, pids=64), network="internal"),
    services=(
        ServiceSpec(
            name="api",
            port=8000,
            command="python3 /srv/server.py",
            healthcheck=HealthCheck(
                command="python3 -c \"import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health')\""
            ),
            limits=Limits(cpus=1, memory_mib=128, pids=64),
        ),
    ),
    dockerfile=DOCKERFILE,
    artifacts=("/app/answer.txt",),
    tags=("shell", "multi-turn", "api"),
    predicted_pass=lambda *, hops, pages, faults: (
        0.3 ** (1 + hops) * (0.1 if pages else 1.0) * (0.5 if faults else 1.0)
    ),
)
def ledger_api(rng: random.Random, *, hops: int, pages: bool, faults: bool) -> Draw:
    """Find a number through a REST API beside the agent's box."""
    server: dict[str, Any] = {"__name__": "server"}
    exec(SERVER, server)  # noqa: S102 - the constant of this file, so that question and service agree
    world = f"{'f' if faults else 'w'}{rng.randrange(10**6)}"
    start = name = rng.choice(server["NAMES"])
    for _ in range(hops):
        name = server["account"](world, name)["manager"]
    total = sum(server["entries"](world, name))
    balance = server["account"](world, name)["balance"]
    expected = total if pages else balance
    root = f"http://api:8000/{world}/accounts"
    who = {0: f"the account {start}", 1: f"the manager of the account {start}"}.get(
        hops, f"the account you reach from {start} by going from an account to its manager {hops} times"
    )
    asked = f"the sum of all entries, over all pages of {root}/NAME/entries," if pages else "the balance"
    return Draw(
        instruction=f"Accounts are at {root}/NAME, for example {root}/{start}. "
        f"What is {asked} of {who}? Write the number to /app/answer.txt.",
        params={"expected": expected},
        oracle=_oracle(root, start, hops=hops, pages=pages),
        wrong={
            "one-more": f"echo {expected + 1} > /app/answer.txt",
            "the-other-number": f"echo {balance if pages else total} > /app/answer.txt",
            "all-candidates": f"echo {expected} {balance} {total} 0 > /app/answer.txt",
        },
        right={"without-newline": f"printf %s {expected} > /app/answer.txt"},
        environment={"get": GET, "services/api/server.py": SERVER, "services/api/Dockerfile": SERVICE_DOCKERFILE},
        budget=Budget(
            turns=4 + 2 * hops + 4 * pages, reply_tokens=96, step_s=20, episode_s=120 + 20 * hops, verify_s=30
        ),
    )


def _oracle(root: str, start: str, *, hops: int, pages: bool) -> str:
    return f"""python3 - <<'END'
import json, time, urllib.error, urllib.request

def get(url):
    while True:
        try:
            return json.load(urllib.request.urlopen(url, timeout=10))
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(0.05)

name = "{start}"
for _ in range({hops}):
    name = get(f"{root}/{{name}}")["manager"]
if {pages}:
    url, total = f"{root}/{{name}}/entries", 0
    page = ""
    while page is not None:
        answer = get(url + page)
        total, page = total + sum(answer["entries"]), answer["next"]
else:
    total = get(f"{root}/{{name}}")["balance"]
open("/app/answer.txt", "w").write(f"{{total}}\\n")
END"""
