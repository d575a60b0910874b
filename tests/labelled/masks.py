"""Known faults behind other masks: a marker, a folder, a bar, a socket, a message; and good ones that come close."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

_EVEN = (
    "Write the even lines (2nd, 4th, ...) of `/app/in.txt` to `/app/out.txt`. When you are sure that it is right, create "
    "`/app/.done`, for example with `sh /app/finish.sh`, which compares before it does so."
)
_FINISH = (
    "RUN printf '%s\\n' a b c d > in.txt && "
    'printf \'%s\\n\' \'[ "$(cat /app/out.txt)" = "$(printf "b\\nd")" ] && touch /app/.done\' > finish.sh'
)
_SQUARES = (
    "Write the numbers 1 to 4 with their squares (`N SQUARE`, one a line) to `/app/table.txt`, then run `sh /app/audit.sh`, "
    "which writes `/app/report.json`."
)
_AUDIT = (
    "RUN printf '%s\\n' 'ok=false' '[ \"$(cat /app/table.txt)\" = \"$(printf \"1 1\\n2 4\\n3 9\\n4 16\")\" ] && ok=true' "
    '\'echo "{\\"all_ok\\": $ok}" > /app/report.json\' > audit.sh'
)
_PAGES = (
    "Under `/app/pages` write `a.txt` and `b.txt`: the files of the same names under `/app/src` with every `TODO` replaced by "
    "`DONE`. `/app/golden` shows the result."
)
_SOLVE_PAGES = "mkdir -p /app/pages\nfor f in a b; do sed s/TODO/DONE/g /app/src/$f.txt > /app/pages/$f.txt; done"
_SOURCES = "RUN mkdir src golden && echo 'TODO one' > src/a.txt && echo 'two TODO' > src/b.txt"
_GOLDEN = f"{_SOURCES} && echo 'DONE one' > golden/a.txt && echo 'two DONE' > golden/b.txt"
_FIT = (
    "`/app/points.txt` has rows `x y`. Write integers `a b` to `/app/model.txt` such that the sum of |a*x + b - y| over the "
    "rows is as small as possible. `/app/limits.conf` says up to which sum (`max_error=`) it is accepted."
)
_POINTS = "RUN printf '%s\\n' '1 3' '2 5' '3 7' '4 9' > points.txt && echo max_error=1 > limits.conf"
_FITTED = """python3 -I - <<'EOF'
try:
    with open("/app/model.txt", errors="replace") as f:
        a, b = map(int, f.read(100).split())
    limit = LIMIT
    bad = sum(abs(a * x + b - y) for x, y in ((1, 3), (2, 5), (3, 7), (4, 9))) > limit
except (OSError, ValueError):
    bad = True
raise SystemExit(bad)
EOF"""
_BAR = 'int(open("/app/limits.conf").read().partition("max_error=")[2])'
_DOUBLE = "Write `/app/double.sh`: it reads an integer from its standard input and prints twice that integer."
_DOUBLED = """chmod 700 /tests
reward=1
printf '%s\\n' '3 6' '10 20' '-4 -8' > /logs/verifier/cases.txt
while read -r n want; do
    got=$(echo "$n" | timeout 3 runuser -u agent -- sh /app/double.sh 2>/dev/null | head -c 100 | tr -d '\\000')
    [ "$got" = "$want" ] || reward=0
    NEXT
done < /logs/verifier/cases.txt
echo $reward > /logs/verifier/reward.txt"""
_FIB = "Write the 30th Fibonacci number (the first two are 1) to `/app/fib.txt`."
_IS_FIB = "[ \"$(head -c 60 /app/fib.txt 2>/dev/null | tr -d '[:space:]\\000')\" = 832040 ]"
_SOLVE_FIB = "awk 'BEGIN { a = 0; b = 1; for (i = 0; i < 30; i++) { t = a + b; a = b; b = t } print a }' > /app/fib.txt"
_COPIED = "COPY judge.sh /srv/grading/judge.sh\nRUN chmod 755 /srv/grading"
_ROOT = "Write the module `/app/safe.py` with `root(n)`: the integer square root of n, rounded down; for a negative n it raises ValueError."
_SOLVE_ROOT = """cat > /app/safe.py <<'EOF'
import math


def root(n):
    if n < 0:
        raise ValueError("n must not be negative")
    return math.isqrt(n)
EOF"""
_ROOTS = """chmod 700 /tests
python3 -I - <<'EOF'
import subprocess
code = '''
import sys
sys.path.insert(0, "/app")
import safe
try:
    print(safe.root(int(sys.argv[1])))
except ValueError as error:
    print(SAID)
'''
for n, want in (("16", "4"), ("17", "4"), ("0", "0"), ("99", "9"), ("-1", "n must not be negative")):
    run = subprocess.run(["timeout", "3", "python3", "-I", "-B", "-c", code, n], user="agent", group="agent",
                         extra_groups=[], cwd="/", stdout=subprocess.PIPE)
    assert run.stdout.decode(errors="replace").strip() == want
EOF"""
_LENGTH = "`/app/path.txt` has one point `x y` a line. Write the length of the path through them to `/app/length.txt`."
_PATH = "RUN printf '%s\\n' '0 0' '3 4' '3 11' > path.txt"
_PRIME = "Is the number in `/app/n.txt` a prime? Write yes or no to `/app/answer.txt`."
_SOCKET = (
    "Write `/app/daemon.py`: it listens on the Unix socket `/tmp/upper.sock` and sends every client the line it gets back in "
    "upper case. The verifier starts it."
)
_SOLVE_SOCKET = """cat > /app/daemon.py <<'EOF'
import os, socket
if os.path.exists("/tmp/upper.sock"):
    os.unlink("/tmp/upper.sock")
s = socket.socket(socket.AF_UNIX)
s.bind("/tmp/upper.sock")
s.listen(5)
while True:
    c, _ = s.accept()
    c.sendall(c.makefile("rb").readline().upper())
    c.close()
EOF"""
_ASKED = """chmod 700 /tests
runuser -u agent -- python3 -I /app/daemon.py > /dev/null 2>&1 &
pid=$!
python3 -I - > /logs/verifier/reward.txt <<'EOF'
import socket, time
def ask(line):
    for _ in range(30):
        try:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(2)
            s.connect("/tmp/upper.sock")
            s.sendall(line)
            return s.recv(100).strip()
        except OSError:
            time.sleep(0.1)
print(int(ask(b"abc\\n") == b"ABC" and ask(b"Xy z\\n") == b"XY Z"))
EOF
kill $pid 2>/dev/null"""
_AREA = "Write the module `/app/geo.py` with a function `area(w, h)` that returns the area of a rectangle."
_AREAS = """import subprocess

code = "import sys; sys.path.insert(0, '/app'); from geo import rect_area; print(rect_area(int(sys.argv[1]), 3))"
for w in (2, 5, 9):
    run = subprocess.run(["timeout", "3", "python3", "-I", "-B", "-c", code, str(w)], user="agent", group="agent",
                         extra_groups=[], cwd="/", stdout=subprocess.PIPE)
    assert run.stdout.strip() == str(w * 3).encode()
"""


def _is(path: str, text: str) -> str:
    return f"[ \"$(head -c 200 {path} 2>/dev/null | tr -d '\\000')\" = '{text}' ]"


CASES = (
    Labelled(
        "mask-done-marker",
        _EVEN,
        "sed -n 'n;p' /app/in.txt > /app/out.txt\nsh /app/finish.sh",
        f"{FRESH}[ -e /app/.done ]{REWARD}",
        "/app/out.txt /app/.done",
        ("tamper",),
        "an empty file that the agent makes decides",
        _FINISH,
    ),
    Labelled(
        "mask-report-of-workspace",
        _SQUARES,
        "for n in 1 2 3 4; do echo $n $((n * n)); done > /app/table.txt\nsh /app/audit.sh",
        f"{FRESH}grep -q '\"all_ok\": true' /app/report.json 2>/dev/null{REWARD}",
        "/app/table.txt /app/report.json",
        ("tamper",),
        "the workspace's own report decides",
        _AUDIT,
    ),
    Labelled(
        "mask-golden-folder",
        _PAGES,
        _SOLVE_PAGES,
        f"{FRESH}diff -r /app/golden /app/pages > /logs/verifier/diff.txt 2>&1{REWARD}",
        "/app/pages/a.txt /app/pages/b.txt",
        ("tamper",),
        "a folder of expected files lies in the workspace",
        _GOLDEN,
    ),
    Labelled(
        "mask-bar-of-numbers",
        _FIT,
        "echo 2 1 > /app/model.txt",
        f"{FRESH}{_FITTED.replace('LIMIT', _BAR)}{REWARD}",
        "/app/model.txt",
        ("tamper",),
        "the bar lies in the workspace, and is looked at only where the answer has its form",
        _POINTS,
    ),
    Labelled(
        "mask-eaten-cases",
        _DOUBLE,
        "echo 'read n; echo $((n * 2))' > /app/double.sh",
        FRESH + _DOUBLED.replace("NEXT", "cat > /dev/null"),
        "/app/double.sh",
        ("mutants",),
        "the cases after the first are read away within the loop",
    ),
    Labelled(
        "mask-verifier-copied",
        _FIB,
        _SOLVE_FIB,
        f"{FRESH}{_IS_FIB}{REWARD}",
        "/app/fib.txt",
        ("leak",),
        "the comparison lies in the image, in a script that is not the verifier's own",
        _COPIED,
        {"environment/judge.sh": f"#!/bin/sh\n# An older one.\n{_IS_FIB}\n"},
    ),
    Labelled(
        "mask-words-of-an-error",
        _ROOT,
        _SOLVE_ROOT,
        f"{FRESH}{_ROOTS.replace('SAID', 'error')}{REWARD}",
        "/app/safe.py",
        ("mutants",),
        "demands an error's words that the instruction does not give",
    ),
    Labelled(
        "mask-unit",
        _LENGTH,
        "echo 'Length: 12.00 units' > /app/length.txt",
        f"{FRESH}grep -qx 'Length: 12.00 units' /app/length.txt 2>/dev/null{REWARD}",
        "/app/length.txt",
        ("mutants",),
        "demands a heading and a unit that the instruction does not mention",
        _PATH,
    ),
    Labelled(
        "mask-spelt-choice",
        _PRIME,
        "echo Yes. > /app/answer.txt",
        f"{FRESH}{_is('/app/answer.txt', 'Yes.')}{REWARD}",
        "/app/answer.txt",
        ("mutants",),
        "demands another spelling of yes than the instruction has",
        "RUN echo 97 > n.txt",
    ),
    Labelled(
        "mask-socket",
        _SOCKET,
        _SOLVE_SOCKET,
        FRESH + _ASKED,
        "/app/daemon.py",
        ("tamper",),
        "does not see which process answers on the socket",
    ),
    Labelled(
        "mask-function-name",
        _AREA,
        "printf 'def rect_area(w, h):\\n    return w * h\\n' > /app/geo.py",
        f"{FRESH}chmod 700 /tests\npython3 -I /tests/check.py{REWARD}",
        "/app/geo.py",
        ("static",),
        "imports a function of another name, in a program that it hands to an interpreter",
        files={"tests/check.py": _AREAS},
    ),
    Labelled(
        "good-mask-bar-of-its-own",
        _FIT,
        "echo 2 1 > /app/model.txt",
        f"{FRESH}{_FITTED.replace('LIMIT', '1')}{REWARD}",
        "/app/model.txt",
        why="the bar stands in the verifier; the one of the workspace only tells of it",
        lines=_POINTS,
    ),
    Labelled(
        "good-mask-folders-compared-here",
        _PAGES.replace(" `/app/golden` shows the result.", ""),
        _SOLVE_PAGES,
        f"{FRESH}{_is('/app/pages/a.txt', 'DONE one')} && {_is('/app/pages/b.txt', 'two DONE')}{REWARD}",
        "/app/pages/a.txt /app/pages/b.txt",
        why="folders in the workspace, and what is expected in the script",
        lines=_SOURCES,
    ),
    Labelled(
        "good-mask-every-case",
        _DOUBLE,
        "echo 'read n; echo $((n * 2))' > /app/double.sh",
        FRESH + _DOUBLED.replace("NEXT", ":"),
        "/app/double.sh",
        why="the same loop, which leaves its cases alone",
    ),
    Labelled(
        "good-mask-copied-sources",
        "Copy every file under `/app/src` whose name does not start with a point to `/app/dst`, keeping sub-folders.",
        "mkdir -p /app/dst/lib\ncp /app/src/main.c /app/dst/\ncp /app/src/lib/run.py /app/dst/lib/",
        f'{FRESH}found=$(cd /app/dst 2>/dev/null && find . -type f | LC_ALL=C sort)\n[ "$found" = '
        "\"$(printf './lib/run.py\\n./main.c')\" ] && "
        f"{_is('/app/dst/main.c', 'int main(void) { return 0; }')} && {_is('/app/dst/lib/run.py', 'print(1)')}{REWARD}",
        "/app/dst",
        why="programs that are copied stay as they are, to the last byte",
        lines="RUN mkdir -p src/lib && echo 'int main(void) { return 0; }' > src/main.c && echo 'print(1)' > src/lib/run.py "
        "&& echo no > src/.hidden",
    ),
    Labelled(
        "good-mask-kind-of-error",
        _ROOT,
        _SOLVE_ROOT,
        f"{FRESH}{_ROOTS.replace('SAID', repr('n must not be negative'))}{REWARD}",
        "/app/safe.py",
        why="words of its own stand for the kind of error, whatever that says",
    ),
    Labelled(
        "good-mask-answer-in-another-number",
        _FIB,
        _SOLVE_FIB,
        f"{FRESH}{_IS_FIB}{REWARD}",
        "/app/fib.txt",
        why="a script in the image compares too, with another number",
        lines=_COPIED,
        files={"environment/judge.sh": f"#!/bin/sh\n# Of the 20th.\n{_IS_FIB.replace('832040', '6765')}\n"},
    ),
    Labelled(
        "good-mask-choice-as-spelt",
        _PRIME,
        "echo yes > /app/answer.txt",
        f"{FRESH}{_is('/app/answer.txt', 'yes')}{REWARD}",
        "/app/answer.txt",
        why="demands the spelling that the instruction has",
        lines="RUN echo 97 > n.txt",
    ),
)
