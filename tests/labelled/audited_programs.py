"""Faults that audits of public benchmarks tell of, in verifiers of programs: ends for outputs, words of one source, remains."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH
from tests.labelled.toolchains import IMAGE

_CLOSED = FRESH + "chmod 700 /tests\n"
_SUM_C = (
    "cat > /app/sum.c <<'EOF'\n#include <stdio.h>\n"
    'int main(void) { long s = 0, x; while (scanf("%ld", &x) == 1) s += x; printf("%ld\\n", s); return 0; }\nEOF'
)
_ASK_SUM_C = "Write `/app/sum.c`: it reads integers from standard input and prints their sum."
_BUILD_C = (
    _CLOSED + "d=$(mktemp -d)\nchmod 755 $d\n"
    "runuser -u agent -- gcc -O1 -o - -S /app/sum.c > $d/sum.s 2>/dev/null && gcc -o $d/sum $d/sum.s 2>/dev/null"
)
_RUN_C = "runuser -u agent -- timeout -s KILL 5 $d/sum"
_SERVER = """cat > /app/server.py <<'EOF'
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"sum": int(query["a"][0]) + int(query["b"][0])}).encode())


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
EOF"""
_ASK_SERVER = (
    "Write `/app/server.py`: an HTTP server on 127.0.0.1, port given as its argument; GET /sum?a=1&b=2 answers with JSON "
    '`{"sum": 3}`.'
)
_ASKS_SERVER = (
    _CLOSED
    + """python3 -I - <<'EOF'
import json, os, signal, socket, subprocess, sys, time, urllib.request

free = socket.socket()
free.bind(("127.0.0.1", 0))
port = free.getsockname()[1]
free.close()
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
server = subprocess.Popen(
    ["python3", "-I", "/app/server.py", str(port)], user="agent", group="agent", extra_groups=[], cwd="/", **quiet
)


def ask(a, b):
    for _ in range(200):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/sum?a={a}&b={b}", timeout=5) as reply:
                return EXPRESSION
        except ValueError:
            return False
        except OSError:
            time.sleep(0.05)
    return False


try:
    ok = all([ask(2, 5), ask(40, -7), ask(1000, 2345)])
finally:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
sys.exit(not ok)
EOF"""
    + REWARD
)
_UNIQ = """cat > /app/uniq.py <<'EOF'
import sys

seen = set()
for line in sys.stdin:
    if line not in seen:
        seen.add(line)
        sys.stdout.write(line)
EOF"""
_UNIQ_IS = (
    _CLOSED + "run() { timeout -s KILL 5 runuser -u agent -- python3 -I /app/uniq.py 2>/dev/null | head -c 99 | "
    "tr -d '\\000' | tr '\\n' ,; }\n"
    "[ \"$(printf 'b\\na\\nb\\nc\\na\\n' | run)\" = b,a,c, ] && [ \"$(printf 'x\\nx\\n' | run)\" = x, ]"
)
_ASK_UNIQ = "Write `/app/uniq.py`: it prints the distinct lines of its standard input in order of first appearance."
_COLLATZ = """import sys


def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


print(steps(int(sys.argv[1])))
"""
_COLLATZ_IS = (
    _CLOSED + "r=1\nfor p in 1:0 6:8 27:111 97:118; do\n"
    '    [ "$(timeout -s KILL 5 runuser -u agent -- python3 -I /app/collatz.py ${p%:*} 2>/dev/null | head -c 99)" = '
    "${p#*:} ] || r=0\ndone\necho $r > /logs/verifier/reward.txt"
)
_RLE = """cat > /app/rle.py <<'EOF'
import re
from itertools import groupby


def encode(text):
    return "".join(f"{len(list(group))}{sign}" for sign, group in groupby(text))


def decode(text):
    return "".join(sign * int(number) for number, sign in re.findall(r"(\\d+)(\\D)", text))
EOF"""


def _c(case_id: str, judged: str, *caught_by: str, why: str) -> Labelled:
    test = f"{_BUILD_C}{judged}"
    return Labelled(case_id, _ASK_SUM_C, _SUM_C, test, "/app/sum.c", caught_by, why, base=IMAGE)


CASES = (
    Labelled(
        "audit-status-200",
        _ASK_SERVER,
        _SERVER,
        _ASKS_SERVER.replace("EXPRESSION", "reply.status == 200"),
        "/app/server.py",
        ("mutants",),
        "the body is not read",
    ),
    Labelled(
        "good-audit-body",
        _ASK_SERVER,
        _SERVER,
        _ASKS_SERVER.replace("EXPRESSION", 'json.loads(reply.read(999)) == {"sum": a + b}'),
        "/app/server.py",
        why="the good twin",
    ),
    Labelled(
        "audit-there-and-back",
        "Write `/app/rle.py` with `encode(text)` (run-length: `aaab` becomes `3a1b`) and `decode(text)`, its inverse.",
        _RLE,
        _CLOSED + "cat > /tmp/back.py <<'EOF'\nimport sys\nsys.path.append('/app')\nimport rle\n"
        "print(all(rle.decode(rle.encode(text)) == text for text in ('aaab', 'xyz', 'hhhhhhhhhhhh', '')))\nEOF\n"
        '[ "$(runuser -u agent -- python3 /tmp/back.py 2>/dev/null)" = True ]' + REWARD,
        "/app/rle.py",
        ("mutants",),
        "what is given back as it was given passes",
    ),
    _c(
        "audit-c-ends-well",
        f" && echo 1 2 3 | {_RUN_C} > /dev/null && echo 10 -4 | {_RUN_C} > /dev/null{REWARD}",
        "mutants",
        why="what the program prints is thrown away",
    ),
    _c(
        "good-audit-c-prints",
        f' && [ "$(echo 1 2 3 | {_RUN_C} | head -c 99)" = 6 ] && [ "$(echo 70000 50000 | {_RUN_C} | head -c 99)" = 120000 ]'
        f' && [ "$(echo -5 | {_RUN_C} | head -c 99)" = -5 ]{REWARD}',
        why="the good twin",
    ),
    Labelled(
        "audit-words-of-one-program",
        _ASK_UNIQ,
        _UNIQ,
        f"{_UNIQ_IS} && grep -q 'seen = set()' /app/uniq.py{REWARD}",
        "/app/uniq.py",
        ("mutants",),
        "looks for a line of the oracle's own source",
    ),
    Labelled("good-audit-any-program", _ASK_UNIQ, _UNIQ, _UNIQ_IS + REWARD, "/app/uniq.py", why="the good twin"),
    Labelled(
        "audit-compiled-remains",
        "Write `/app/collatz.py`: given N it prints the number of Collatz steps to 1.",
        f"cat > /app/collatz.py <<'EOF'\n{_COLLATZ}EOF",
        _COLLATZ_IS,
        "/app/collatz.py",
        ("leak",),
        "the compiled oracle was left behind",
        "COPY collatz.py /app/collatz.py\nRUN cd /app && python3 -m compileall -q . && rm collatz.py",
        {"environment/collatz.py": _COLLATZ},
    ),
    Labelled(
        "good-audit-compiled-stub",
        "`/app/collatz.py` is a stub. Finish it: given N it prints the number of Collatz steps to 1.",
        f"cat > /app/collatz.py <<'EOF'\n{_COLLATZ}EOF",
        _COLLATZ_IS,
        "/app/collatz.py",
        why="the good twin: what is compiled is the stub that lies beside it",
        lines="COPY collatz.py /app/collatz.py\nRUN cd /app && python3 -m compileall -q .",
        files={"environment/collatz.py": "import sys\n\nprint(int(sys.argv[1]))\n"},
    ),
)
