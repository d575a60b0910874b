"""Faults that reading finds: line ends, run bits, names, downloads and installs; and what only looks like them."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import CHECK_SUM, FRESH, NUMBERS, RUN, SOLVE_SUM, SUM

_TABLE = """python3 -I - <<'EOF'
import os
with open(os.path.join("/app", "table" + ".csv"), "rb") as table:
    assert table.read(999).split() == [b"1", b"a", b"2", b"b"]
EOF"""


def _sum(
    case_id: str, test: str, *caught_by: str, why: str, lines: str = "", instruction: str = SUM, **files: str
) -> Labelled:
    named = {f"tests/{name.replace('__', '.')}": text for name, text in files.items()}
    more = {"tests/check.py": CHECK_SUM, **named}
    return Labelled(
        case_id, instruction, SOLVE_SUM, test, "/app/total.txt", caught_by, why, f"{NUMBERS}\n{lines}", more
    )


def _named(case_id: str, name: str, *caught_by: str, why: str) -> Labelled:
    test = f"""{FRESH}chmod 700 /tests
cat > /tmp/call.py <<'EOF'
import sys
sys.path.insert(0, "/app")
from mirror import {name}
print({name}(sys.argv[1]))
EOF
r=1
for row in anna:True abc:False x:True ab:False; do
    got=$(timeout -s KILL 9 runuser -u agent -- python3 -I -B /tmp/call.py "${{row%%:*}}" 2>/dev/null | head -c 99 | tr -d '\\000')
    [ "$got" = "${{row#*:}}" ] || r=0
done
[ $r = 1 ]{REWARD}"""
    solve = f"cat > /app/mirror.py <<'EOF'\ndef {name}(text):\n    return text == text[::-1]\nEOF"
    ask = (
        "Write `/app/mirror.py` with a function `palindrome(text)` that tells whether a text reads the same backwards."
    )
    return Labelled(case_id, ask, solve, test, "/app/mirror.py", caught_by, why)


def _keyed(case_id: str, key: str, *caught_by: str, why: str) -> Labelled:
    test = f"""{FRESH}python3 -I - <<'EOF'
import json
try:
    with open("/app/stats.json", "rb") as f:
        data = json.loads(f.read(400))
except (OSError, ValueError):
    data = None
raise SystemExit(not (isinstance(data, dict) and data.get("{key}") == 42))
EOF{REWARD}"""
    solve = f"echo '{{\"{key}\": 42}}' > /app/stats.json"
    ask = "Write `/app/stats.json`: an object whose key `sum` holds the sum of the integers in `/app/numbers.txt`."
    return Labelled(case_id, ask, solve, test, "/app/stats.json", caught_by, why, NUMBERS)


CASES = (
    Labelled(
        "manifest-suffix-put-together",
        "Write the rows of `/app/in.txt` with the two columns swapped to `/app/table.tsv`, columns separated by one tab.",
        "awk '{ print $2 \"\\t\" $1 }' /app/in.txt > /app/table.csv",
        FRESH + _TABLE + REWARD,
        "/app/table.csv",
        ("static",),
        "reads table.csv, a name that the script puts together, where the instruction says table.tsv",
        "RUN printf '%s\\n' 'a 1' 'b 2' > /app/in.txt",
    ),
    _sum(
        "manifest-crlf-helper",
        f"/tests/verify{REWARD}",
        "oracle",
        "static",
        why="the helper has CR LF line ends",
        verify="#!/bin/sh\r\npython3 -I /tests/check.py\r\n",
    ),
    _sum(
        "manifest-no-run-bit",
        f'T=/tests\n"$T/verify"{REWARD}',
        "oracle",
        why="the helper has no run bit",
        verify="#!/bin/sh\npython3 -I /tests/check.py\n",
    ),
    _sum(
        "manifest-pip-in-python",
        f"python3 -I /tests/prepare.py && {RUN}{REWARD}",
        "oracle",
        "static",
        why="a Python helper installs a package while verifying",
        prepare__py="import subprocess\nimport sys\n\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'linecheck==1.4'], check=True)\n",
    ),
    _sum(
        "manifest-urlopen",
        f"python3 -I /tests/fetch.py && {RUN}{REWARD}",
        "oracle",
        "static",
        why="downloads what it compares with",
        fetch__py="import urllib.request\n\nurllib.request.urlopen('https://files.example.org/want.txt', timeout=2).read()\n",
    ),
    _sum(
        "network-guarded-socket",
        f"{FRESH}python3 -I /tests/report.py; {RUN}{REWARD}",
        "network",
        why="tells a server of its result, and goes on where there is none",
        report__py="import socket\n\ntry:\n    socket.create_connection(('192.0.2.7', 443), 1)\nexcept OSError:\n    pass\n",
    ),
    _sum(
        "network-name-put-together",
        f"{FRESH}python3 -I /tests/report.py 2>/dev/null; {RUN}{REWARD}",
        "network",
        why="asks for a name that reading does not find",
        report__py="import urllib.request\n\nhost = '.'.join(['files', 'example', 'org'])\n"
        "try:\n    urllib.request.urlopen('https:' + '//' + host, timeout=1)\nexcept OSError:\n    pass\n",
    ),
    _sum(
        "good-network-loopback",
        f"{FRESH}python3 -I /tests/serve.py && {RUN}{REWARD}",
        why="looks like a network: its own socket on the loopback address, by name",
        serve__py="import socket\n\nserver = socket.create_server(('localhost', 0))\n"
        "with socket.create_connection(('localhost', server.getsockname()[1]), 5):\n    pass\n",
    ),
    _sum(
        "manifest-uv-run",
        f"curl -LsSf https://astral.example.org/install.sh | sh\nuvx pytest /tests{REWARD}",
        "oracle",
        "static",
        why="installs its runner while verifying",
    ),
    _sum(
        "manifest-apt-guarded",
        f"apt-get update -qq && apt-get install -y -qq jq || true\n{FRESH}{RUN}{REWARD}",
        "static",
        why="installs while verifying, though it goes on without",
    ),
    _sum(
        "manifest-other-name",
        f'{FRESH}python3 -I -c \'import sys; sys.exit(open("/app/sum.txt", "rb").read(64).strip() != b"42")\' 2>/dev/null{REWARD}',
        "oracle",
        "static",
        why="the verifier reads a name that the instruction does not know",
    ),
    _sum(
        "manifest-unpinned-pip",
        f"{FRESH}{RUN}{REWARD}",
        "static",
        why="what the image installs changes from day to day",
        lines="RUN pip install numpy requests >/dev/null 2>&1 || true",
    ),
    _sum(
        "manifest-python-typo",
        f"{FRESH}python3 -I /tests/broken.py{REWARD}",
        "oracle",
        "static",
        why="the verifier is not valid Python",
        broken__py="def check(:\n    pass\n",
    ),
    _sum(
        "good-manifest-local-fetch",
        f"{FRESH}python3 -I /tests/serve.py && {RUN}{REWARD}",
        why="looks like a download: from a server on the loopback address that it starts itself",
        serve__py="import http.server\nimport threading\nimport urllib.request\n\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "try:\n    urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/', timeout=5)\n"
        "except urllib.error.HTTPError:\n    pass\n",
    ),
    _sum(
        "good-manifest-pinned",
        f"{FRESH}{RUN}{REWARD}",
        why="looks like an unpinned install: the version is given",
        lines="RUN pip install --no-cache-dir numpy==1.26.4 'requests~=2.31.0' >/dev/null 2>&1 || true",
    ),
    _sum(
        "good-manifest-says-install",
        f"{FRESH}echo 'note: pip install numpy is not needed here; see https://example.org/help'\n# curl https://example.org\n{RUN}{REWARD}",
        why="looks like an install: it is printed",
    ),
    _sum(
        "good-manifest-crlf-data",
        f"{FRESH}cmp -s /tests/want.txt /tests/want.txt && {RUN}{REWARD}",
        why="looks like CR LF in a script: it is data",
        want__txt="name,total\r\n",
    ),
    _sum(
        "good-manifest-shell-by-interpreter",
        f"{FRESH}sh /tests/verify{REWARD}",
        why="looks like a missing run bit: the helper is called through its interpreter",
        verify="python3 -I /tests/check.py\n",
    ),
    _named(
        "manifest-other-function", "is_palindrome", "static", why="imports a name that the instruction does not give"
    ),
    _named("good-manifest-named-function", "palindrome", why="the good twin: one name"),
    _keyed("manifest-other-key", "total", "static", why="looks for a key that the instruction does not give"),
    _keyed("good-manifest-named-key", "sum", why="the good twin: one key"),
)
