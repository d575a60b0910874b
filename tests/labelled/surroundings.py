"""Verdicts that depend on date, zone, locale, hash seed, chance or a busy machine; and such that only mention them."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

_READ = """import os
got = b""
if os.path.isfile("{path}"):
    with open("{path}", "rb") as f:
        got = f.read(400)
"""


def python(code: str, path: str) -> str:
    return f"{FRESH}python3 -I - <<'EOF'\n{_READ.format(path=path)}{code}EOF{REWARD}"


AGE = "Ada was born on 1990-05-17. Taking 2024-03-01 as today, write her age in whole years to `/app/age.txt`."
STAMP = "`/app/epoch.txt` holds seconds since 1970. Write that moment in UTC to `/app/when.txt` as YYYY-MM-DD HH:MM."
SOLVE_STAMP = "date -u -d @$(cat /app/epoch.txt) '+%Y-%m-%d %H:%M' > /app/when.txt"
EPOCH = "RUN echo 1709164800 > /app/epoch.txt"
WORDS = "Write the distinct words of `/app/words.txt`, sorted, separated by single spaces, to `/app/distinct.txt`."
SOLVE_WORDS = "tr ' ' '\\n' < /app/words.txt | LC_ALL=C sort -u | tr '\\n' ' ' | sed 's/ $//' > /app/distinct.txt"
STORY = "RUN echo 'red blue green red amber' > /app/words.txt"
TWICE = "Write `/app/twice.py`: called with an integer it prints twice that integer."
SOLVE_TWICE = "printf 'import sys\\nprint(int(sys.argv[1]) * 2)\\n' > /app/twice.py"
_CALL = (
    "timeout -s KILL {limit} runuser -u agent -- python3 -I /app/twice.py {n} 2>/dev/null | head -c 99 | tr -d '\\000'"
)
_SWEEP = """r=1
for pair in 2:4 -5:-10 0:0 1000:2000; do
    [ "$(CALL)" = "${pair#*:}" ] || r=0
done
""".replace("CALL", _CALL.format(limit="20", n='"${pair%%:*}"'))


def _age(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id, AGE, "echo 33 > /app/age.txt", python(code, "/app/age.txt"), "/app/age.txt", caught_by, why
    )


def _stamp(case_id: str, test: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, STAMP, SOLVE_STAMP, test, "/app/when.txt", caught_by, why, EPOCH)


def _words(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id, WORDS, SOLVE_WORDS, python(code, "/app/distinct.txt"), "/app/distinct.txt", caught_by, why, STORY
    )


def _twice(case_id: str, test: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, TWICE, SOLVE_TWICE, f"{FRESH}chmod 700 /tests\n{test}", "/app/twice.py", caught_by, why)


CASES = (
    _age(
        "clock-expires",
        "import time\nif time.time() > os.stat('/tests/test.sh').st_mtime + 200 * 86400:\n    raise SystemExit('licence expired')\n"
        "raise SystemExit(got.strip() != b'33')\n",
        "clock",
        why="a licence that ends some day: a later run fails",
    ),
    _stamp(
        "clock-file-is-fresh",
        f"{FRESH}[ -n \"$(find /app/when.txt -mmin -30 2>/dev/null)\" ] && grep -qx '2024-02-29 00:00' /app/when.txt{REWARD}",
        "clock",
        why="the answer must be younger than half an hour: scoring again fails",
    ),
    _stamp(
        "clock-mtime-python",
        python(
            "import time\nyoung = time.time() - os.path.getmtime('/app/when.txt') < 3600 if got else False\n"
            "raise SystemExit(not (young and got.strip() == b'2024-02-29 00:00'))\n",
            "/app/when.txt",
        ),
        "clock",
        why="the answer must be younger than an hour",
    ),
    _stamp(
        "clock-zone-fromtimestamp",
        python(
            "from datetime import datetime\nwant = datetime.fromtimestamp(1709164800).strftime('%Y-%m-%d %H:%M')\n"
            "raise SystemExit(got.strip() != want.encode())\n",
            "/app/when.txt",
        ),
        "clock",
        why="the expected moment is in the machine's zone",
    ),
    _stamp(
        "clock-zone-date",
        f"{FRESH}[ \"$(head -c 99 /app/when.txt 2>/dev/null | tr -d '\\000')\" = \"$(date -d @1709164800 '+%Y-%m-%d %H:%M')\" ]{REWARD}",
        "clock",
        why="date without -u",
    ),
    _stamp(
        "clock-this-year",
        f"{FRESH}[ \"$(head -c 4 /app/when.txt 2>/dev/null | tr -d '\\000')\" = $(( $(date +%Y) - $(date +%Y) + 2024 )) ] && "
        f"grep -qx '2024-02-29 00:00' /app/when.txt && [ $(( $(date +%s) / 86400 )) -lt $(( $(stat -c %Y /tests/test.sh) / 86400 + 300 )) ]{REWARD}",
        "clock",
        why="passes only within three hundred days",
    ),
    _words(
        "seed-order-of-a-set",
        "want = ' '.join(set('red blue green red amber'.split()))\nraise SystemExit(got.decode('utf-8', 'replace').split() != sorted(want.split()) or want < 'b')\n",
        "hash_seed",
        why="looks at the first word of a joined set",
    ),
    _words(
        "seed-hash-of-text",
        "raise SystemExit(not (got.split() == b'amber blue green red'.split() and hash('amber') % 4 != 0))\n",
        "hash_seed",
        why="hash() of a text differs from process to process",
    ),
    _words(
        "seed-pop-from-set",
        "words = set('red blue green amber'.split())\nfirst = words.pop()\n"
        "raise SystemExit(not (got.split() == b'amber blue green red'.split() and first != 'amber'))\n",
        "hash_seed",
        why="set.pop takes whichever comes first",
    ),
    _twice(
        "chance-random-case",
        "n=$(python3 -I -c 'import random; print(random.choice([3, 8, 11, 0]))')\n"
        f'[ "$({_CALL.format(limit=20, n="$n")})" = $((n * 2)) ] && [ $n != 11 ]{REWARD}',
        "repeat",
        why="draws a case, and one of them cannot pass",
    ),
    _twice(
        "chance-shuf",
        _SWEEP + "[ $r = 1 ] && [ \"$(printf '%s\\n' a b c d | shuf -n 1)\" != c ]" + REWARD,
        "repeat",
        why="a shuffled list decides",
    ),
    _twice(
        "chance-urandom",
        _SWEEP + '[ $r = 1 ] && [ "$(od -An -N1 -tu1 /dev/urandom)" -lt 160 ]' + REWARD,
        "repeat",
        why="random bytes decide",
    ),
    _twice(
        "chance-race",
        _SWEEP
        + "rm -f /tmp/done\n( sleep 0.0$(od -An -N1 -tu1 /dev/urandom | tr -d ' ' | cut -c1); echo 1 > /tmp/done ) &\nsleep 0.04\n"
        "[ $r = 1 ] && [ -e /tmp/done ]" + REWARD,
        "repeat",
        why="waits a fixed moment for a helper whose length varies",
    ),
    _twice(
        "chance-nanoseconds",
        _SWEEP + "[ $r = 1 ] && [ $(( $(date +%s%N) / 1000 % 3 )) -ne 0 ]" + REWARD,
        "repeat",
        why="the clock's small digits decide",
    ),
    _twice(
        "load-tight-limit",
        _SWEEP
        + "python3 -I - <<'EOF'\nimport time\nstart = time.monotonic()\nn = 0\nwhile time.process_time() < 0.3:\n    n += 1\n"
        "raise SystemExit(time.monotonic() - start > 0.9)\nEOF\nquick=$?\n[ $r = 1 ] && [ $quick = 0 ]" + REWARD,
        "load",
        why="a limit on time by the wall: a busy machine fails it",
    ),
    _age(
        "good-clock-fixed-today",
        "from datetime import date\ntoday, born = date(2024, 3, 1), date(1990, 5, 17)\n"
        "want = today.year - born.year - ((today.month, today.day) < (born.month, born.day))\n"
        "raise SystemExit(got.strip() != str(want).encode())\n",
        why="looks like today's date: it is fixed",
    ),
    _stamp(
        "good-clock-utc",
        python(
            "from datetime import datetime, timezone\nwant = datetime.fromtimestamp(1709164800, timezone.utc).strftime('%Y-%m-%d %H:%M')\n"
            "raise SystemExit(got.strip() != want.encode())\n",
            "/app/when.txt",
        ),
        why="looks like the machine's zone: it is UTC",
    ),
    _stamp(
        "good-clock-logs-the-date",
        f'{FRESH}echo "checked on $(date)"\nstarted=$(date +%s)\n'
        "[ \"$(head -c 99 /app/when.txt 2>/dev/null | tr -d '\\000')\" = '2024-02-29 00:00' ]\ncode=$?\n"
        'echo "took $(( $(date +%s) - started )) s"\n[ $code = 0 ]' + REWARD,
        why="looks like today's date: it is only printed",
    ),
    _words(
        "good-seed-sorted",
        "want = ' '.join(sorted({'red', 'blue', 'green', 'amber'}))\nraise SystemExit(got.decode('utf-8', 'replace').split() != want.split())\n",
        why="looks like the order of a set: it is sorted",
    ),
    _twice(
        "good-chance-seeded",
        "r=1\nfor n in $(python3 -I -c 'import random; r = random.Random(7); print(*(r.randrange(-99, 99) for _ in range(6)))'); do\n"
        f'    [ "$({_CALL.format(limit=20, n="$n")})" = $((n * 2)) ] || r=0\ndone\n[ $r = 1 ]{REWARD}',
        why="looks like random cases: the generator is seeded",
    ),
    _twice(
        "good-load-wide-limit",
        _SWEEP + "[ $r = 1 ]" + REWARD,
        why="looks like a time limit: twenty seconds for a print",
    ),
)
