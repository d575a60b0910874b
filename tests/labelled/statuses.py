"""Exit statuses that are lost on their way to the reward, and ways to keep them that look alike."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled

SUM = "`/app/numbers.txt` holds one integer a line. Write their sum, as a decimal integer and nothing else, to `/app/total.txt`."
SOLVE_SUM = "awk '{ s += $1 } END { print s }' /app/numbers.txt > /app/total.txt"
NUMBERS = "RUN printf '%s\\n' 12 7 -3 26 > /app/numbers.txt"
CHECK_SUM = """import os
got = b""
if os.path.isfile("/app/total.txt"):
    with open("/app/total.txt", "rb") as f:
        got = f.read(64).strip()
raise SystemExit(0 if got == b"42" else 1)
"""
TEST_SUM = """def test_total():
    with open("/app/total.txt", "rb") as f:
        assert f.read(64).strip() == b"42"
"""
RUN = "python3 -I /tests/check.py"
FRESH = "rm -f /logs/verifier/reward.txt /logs/verifier/reward.json\n"


def _sum(case_id: str, test: str, *caught_by: str, why: str, **files: str) -> Labelled:
    more = {"tests/check.py": CHECK_SUM, **{f"tests/{name}.py": text for name, text in files.items()}}
    return Labelled(case_id, SUM, SOLVE_SUM, test, "/app/total.txt", caught_by, why, NUMBERS, more)


CASES = (
    _sum("status-or-echo", f'{RUN} || echo "some tests failed"{REWARD}', "noop", why="echo always succeeds"),
    _sum(
        "status-subshell-true",
        f"( {RUN}; true ){REWARD}",
        "noop",
        why="the subshell's last command is true",
    ),
    _sum(
        "status-after-echo",
        f"{RUN}\necho checked{REWARD}",
        "noop",
        why="$? is that of the echo between",
    ),
    _sum(
        "status-pipe-tail-in-if",
        f"if {RUN} 2>&1 | tail -n 20; then r=1; else r=0; fi\necho $r > /logs/verifier/reward.txt",
        "noop",
        why="the condition is the status of tail",
    ),
    _sum(
        "status-pipe-grep-v",
        f"{RUN} 2>&1 | sed 's/^/check: /' > /tmp/log{REWARD}",
        "noop",
        why="the status is that of sed",
    ),
    _sum(
        "status-background",
        f"{RUN} &\nwait{REWARD}",
        "noop",
        why="wait without a process id is always 0",
    ),
    _sum(
        "status-of-assignment",
        f'verdict() {{\n    local out="$({RUN})"\n    return $?\n}}\nverdict{REWARD}',
        "noop",
        why="local hides the status of what it assigns",
    ),
    _sum(
        "status-find-exec",
        f"find /tests -name check.py -exec python3 -I {{}} \\;{REWARD}",
        "noop",
        why="find's status ignores that of the program",
    ),
    _sum(
        "status-unittest-exit-false",
        f"python3 -I /tests/units.py{REWARD}",
        "noop",
        why="unittest.main(exit=False) leaves the status 0",
        units="import unittest\n\n\nclass Total(unittest.TestCase):\n    def test_total(self):\n"
        "        with open('/app/total.txt', 'rb') as f:\n            self.assertEqual(f.read(64).strip(), b'42')\n\n\n"
        "unittest.main(exit=False)\n",
    ),
    _sum(
        "status-trap-writes-one",
        f"trap 'echo 1 > /logs/verifier/reward.txt' EXIT\n{RUN} || exit 1",
        "noop",
        why="the trap writes a pass however the script ends",
    ),
    _sum(
        "status-caught-exception",
        "python3 -I - <<'EOF'\ntry:\n    with open('/app/total.txt') as f:\n        assert f.read().strip() == '42'\n"
        f"except Exception as error:\n    print('check failed:', error)\nEOF{REWARD}",
        "noop",
        why="the exception that would fail is printed and forgotten",
    ),
    _sum(
        "status-subprocess-unchecked",
        f'python3 -I -c \'import subprocess; subprocess.run(["python3", "-I", "/tests/check.py"])\'{REWARD}',
        "noop",
        why="subprocess.run without check=True passes no status on",
    ),
    _sum(
        "status-pytest-no-tests-accepted",
        "python3 -m pytest -q -p no:cacheprovider /tests/tests_total.py -k total_is > /tmp/log 2>&1\ncode=$?\n"
        "if [ $code -eq 0 ] || [ $code -eq 5 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt",
        "noop",
        why="pytest's status 5, no tests collected, counts as a pass",
        tests_total=TEST_SUM,
    ),
    _sum(
        "good-status-or-code",
        f'{FRESH}code=0\n{RUN} || code=$?\necho "ended with $code"\n'
        "if [ $code -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt",
        why="looks like a swallowed status: it is kept in a variable",
    ),
    _sum(
        "good-status-pipefail",
        f"{FRESH}cat > /tmp/run.sh <<'EOF'\nset -o pipefail\n{RUN} 2>&1 | tail -n 5\nEOF\nbash /tmp/run.sh{REWARD}",
        why="looks like a pipe that loses the status: pipefail keeps it",
    ),
    _sum(
        "good-status-wait-pid",
        f"{FRESH}{RUN} &\npid=$!\nwait $pid{REWARD}",
        why="looks like a lost background status: wait names the process",
    ),
    _sum(
        "good-status-pipe-after",
        f"{FRESH}{RUN} > /tmp/log 2>&1\ncode=$?\nhead -n 3 /tmp/log | sed 's/^/log: /' || true\n"
        "[ $code -eq 0 ] && reward=1 || reward=0\necho $reward > /logs/verifier/reward.txt",
        why="looks like a lost status: the pipe comes after it was kept",
    ),
)
