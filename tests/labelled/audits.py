"""Faults that audits of public benchmarks tell of, in verifiers of files: little looked at, form for content, remains."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.moved_inputs import PYTEST, READ
from tests.labelled.statuses import FRESH

_LOG = (
    "RUN printf '%s\\n' '03-01 ERROR disk' '03-01 INFO start' '03-02 ERROR net' '03-02 WARN slow' '03-03 ERROR disk' "
    "'03-03 ERROR cpu' > /app/app.log"
)
_USERS = "RUN printf '%s\\n' 'id,name,age' '3,Ann,31' '1,Bo,45' '2,Cy,28' > /app/users.csv"


def _pytest(
    case_id: str, ask: str, solve: str, test: str, artifacts: str, *caught_by: str, why: str, lines: str
) -> Labelled:
    files = {"tests/test_outputs.py": READ + test}
    return Labelled(case_id, ask, solve, PYTEST, artifacts, caught_by, why, lines, files)


def _is(path: str, text: str) -> str:
    return f"[ ! -L {path} ] && [ \"$(head -c 200 {path} 2>/dev/null | tr -d '\\000')\" = '{text}' ]"


_TOP = (
    "`/app/hits.log` has a line `ADDRESS PATH` per request. Write the address with the most requests to `/app/top.txt`."
)
_HITS = "RUN printf '%s\\n' '10.0.0.1 /a' '10.0.0.12 /a' '10.0.0.1 /b' '10.0.0.7 /c' > /app/hits.log"
_TRANSPOSE = "Write the transpose of the matrix in `/app/m.txt` to `/app/t.txt`, in the same form."
_SOLVE_TRANSPOSE = (
    "python3 -c \"print('\\n'.join(' '.join(c) for c in zip(*[l.split() for l in open('/app/m.txt')])))\" > /app/t.txt"
)
_MATRIX = "RUN printf '%s\\n' '1 2 3' '4 5 6' '7 8 10' > /app/m.txt"
_ADULTS = "Write the names in `/app/users.csv` of people aged 30 or older to `/app/adults.json` as a JSON list."
_TWO = (
    "From `/app/users.csv` write the oldest person's name to `/app/oldest.txt` and the mean age with one decimal to "
    "`/app/mean.txt`."
)
_SOLVE_TWO = "echo Bo > /app/oldest.txt; echo 34.7 > /app/mean.txt"
_KEYS = "Make every file under `/app/keys` readable and writable by its owner only."
_MADE_KEYS = (
    "RUN mkdir -p /app/keys/old && echo k1 > /app/keys/a.pem && echo k2 > /app/keys/old/b.pem && "
    "chmod 644 /app/keys/a.pem /app/keys/old/b.pem"
)
_SOLVE_KEYS = "find /app/keys -type f -exec chmod 600 {} +"
_TALLY = 'Write the counts of each level in `/app/app.log` to `/app/levels.json`, for example `{"ERROR": %d, "INFO": %d, "WARN": %d}`.'
_TALLY_TEST = """import json


def test_levels():
    got = json.loads(read("/app/levels.json"))
    assert all(type(value) is int for value in got.values())
    assert got == {"ERROR": 4, "INFO": 1, "WARN": 1}
"""
_SOLVE_TALLY = 'echo \'{"ERROR": 4, "INFO": 1, "WARN": 1}\' > /app/levels.json'
_BASE = """import sqlite3

base = sqlite3.connect("/app/shop.db")
base.execute("create table sales(item, qty)")
base.executemany("insert into sales values (?, ?)", [("pen", 638), ("cup", 999), ("pen", 500), ("hat", 217), ("cup", 43)])
base.execute("create table TABLE(item, total)")
base.executemany("insert into TABLE values (?, ?)", ROWS)
base.commit()
"""
_TOTALS = (
    "In `/app/shop.db`, table `sales` (item, qty), sum `qty` by item. Write `ITEM TOTAL` per item, by name, to "
    "`/app/totals.txt`."
)
_SOLVE_TOTALS = "printf 'cup 1042\\nhat 217\\npen 1138\\n' > /app/totals.txt"
_ENV = "RUN printf 'MODE=dev\\nPORT=80\\nHOST=0.0.0.0\\n' > /app/app.env"


def _base(case_id: str, table: str, rows: str, *caught_by: str, why: str) -> Labelled:
    make = _BASE.replace("TABLE", table).replace("ROWS", rows)
    lines = "COPY make.py /tmp/make.py\nRUN python3 /tmp/make.py && rm /tmp/make.py"
    test = FRESH + _is("/app/totals.txt", "cup 1042\nhat 217\npen 1138") + REWARD
    files = {"environment/make.py": make}
    return Labelled(case_id, _TOTALS, _SOLVE_TOTALS, test, "/app/totals.txt", caught_by, why, lines, files)


CASES = (
    Labelled(
        "audit-word-within",
        _TOP,
        "cut -d' ' -f1 /app/hits.log | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }' > /app/top.txt",
        FRESH + "[ ! -L /app/top.txt ] && grep -q '10.0.0.1' /app/top.txt" + REWARD,
        "/app/top.txt",
        ("mutants",),
        "an address that begins alike passes, and the whole log",
        _HITS,
    ),
    _pytest(
        "audit-tokens-without-case",
        "Write the third column of `/app/tokens.tsv` (opaque tokens) to `/app/tokens.txt`, one per line, in its order.",
        "cut -f3 /app/tokens.tsv > /app/tokens.txt",
        "def test_tokens():\n    assert read('/app/tokens.txt').lower().split() == ['qx7lm', 'zztop9', 'kpw0r']\n",
        "/app/tokens.txt",
        "mutants",
        why="tokens in other letters pass",
        lines="RUN printf 'a\\t1\\tQx7Lm\\nb\\t2\\tzzTop9\\nc\\t3\\tKpW0r\\n' > /app/tokens.tsv",
    ),
    _pytest(
        "good-audit-either-case",
        "Write the ISO country code of the address in `/app/letter.txt` to `/app/code.txt`, in upper or lower case.",
        "echo NO > /app/code.txt",
        "def test_code():\n    assert read('/app/code.txt').strip().lower() == 'no'\n",
        "/app/code.txt",
        why="the case is left open",
        lines="RUN printf 'Ola Nordmann\\n0155 Oslo\\nNorway\\n' > /app/letter.txt",
    ),
    _pytest(
        "audit-rounded-away",
        "Write the standard deviation (population) of the numbers in `/app/x.txt`, with three decimals, to `/app/sd.txt`.",
        "awk '{ s += $1; q += $1 * $1 } END { m = s / NR; printf \"%.3f\\n\", sqrt(q / NR - m * m) }' /app/x.txt > /app/sd.txt",
        "import re\n\n\ndef test_sd():\n    text = read('/app/sd.txt').strip()\n"
        "    assert re.fullmatch(r'[0-9]{1,3}([.][0-9]{1,9})?', text)\n    assert round(float(text)) == 2\n",
        "/app/sd.txt",
        "mutants",
        why="compared as whole numbers",
        lines="RUN printf '%s\\n' 4.1 7.7 9.3 2.8 6.6 > /app/x.txt",
    ),
    _pytest(
        "audit-shape-and-sum",
        _TRANSPOSE,
        _SOLVE_TRANSPOSE,
        "def test_transpose():\n    rows = [[int(cell) for cell in line.split()] for line in read('/app/t.txt').splitlines()]\n"
        "    assert [len(row) for row in rows] == [3, 3, 3]\n    assert sum(map(sum, rows)) == 46\n",
        "/app/t.txt",
        "mutants",
        why="the input itself passes",
        lines=_MATRIX,
    ),
    _pytest(
        "good-audit-cells",
        _TRANSPOSE,
        _SOLVE_TRANSPOSE,
        "def test_transpose():\n    rows = [[int(cell) for cell in line.split()] for line in read('/app/t.txt').splitlines()]\n"
        "    assert rows == [[1, 4, 7], [2, 5, 8], [3, 6, 10]]\n",
        "/app/t.txt",
        why="the good twin: every cell in its place, whatever white space",
        lines=_MATRIX,
    ),
    _pytest(
        "audit-list-with-more",
        _ADULTS,
        'echo \'["Ann", "Bo"]\' > /app/adults.json',
        "import json\n\n\ndef test_adults():\n    names = json.loads(read('/app/adults.json'))\n"
        "    assert isinstance(names, list) and all(name in names for name in ('Ann', 'Bo'))\n",
        "/app/adults.json",
        "mutants",
        why="everybody listed passes",
        lines=_USERS,
    ),
    _pytest(
        "audit-second-file-if-there",
        _TWO,
        _SOLVE_TWO,
        "def test_oldest():\n    assert read('/app/oldest.txt').strip() == 'Bo'\n\n\ndef test_mean():\n"
        "    if os.path.lexists('/app/mean.txt'):\n        assert read('/app/mean.txt').strip() == '34.7'\n",
        "/app/oldest.txt /app/mean.txt",
        "mutants",
        why="a file that is missing is not judged",
        lines=_USERS,
    ),
    _pytest(
        "good-audit-both-files",
        _TWO,
        _SOLVE_TWO,
        "def test_oldest():\n    assert read('/app/oldest.txt').strip() == 'Bo'\n\n\ndef test_mean():\n"
        "    assert os.path.lexists('/app/mean.txt'), 'no mean'\n    assert read('/app/mean.txt').strip() == '34.7'\n",
        "/app/oldest.txt /app/mean.txt",
        why="the good twin",
        lines=_USERS,
    ),
    Labelled(
        "audit-own-checksum",
        "Write the ERROR lines of `/app/app.log` to `/app/errors.log` and their SHA-256 (hex) to `/app/errors.sha256`.",
        "grep ' ERROR ' /app/app.log > /app/errors.log; sha256sum /app/errors.log | cut -d' ' -f1 > /app/errors.sha256",
        FRESH + "[ -s /app/errors.log ] && "
        '[ "$(sha256sum /app/errors.log | cut -d\' \' -f1)" = "$(head -c 99 /app/errors.sha256)" ]' + REWARD,
        "/app/errors.log /app/errors.sha256",
        ("mutants",),
        "the submission is compared with itself",
        _LOG,
    ),
    Labelled(
        "audit-nothing-left",
        _KEYS,
        _SOLVE_KEYS,
        FRESH + '[ -d /app/keys ] && [ -z "$(find /app/keys -type f ! -perm 600)" ]' + REWARD,
        "/app/keys",
        ("empty", "mutants"),
        "where no file is left none is wrong",
        _MADE_KEYS,
    ),
    Labelled(
        "good-audit-all-left",
        _KEYS,
        _SOLVE_KEYS,
        FRESH
        + """python3 -I - <<'EOF'
import os, stat, sys
found = {}
for folder, _, names in os.walk("/app/keys"):
    for path in (os.path.join(folder, name) for name in names):
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) == 0o600:
            with open(path, "rb") as f:
                found[path] = f.read(9)
sys.exit(found != {"/app/keys/a.pem": b"k1\\n", "/app/keys/old/b.pem": b"k2\\n"})
EOF"""
        + REWARD,
        "/app/keys",
        why="the good twin: modes and contents of files that the oracle does not write",
        lines=_MADE_KEYS,
    ),
    Labelled(
        "audit-sourced",
        "Set `MODE=prod` and `PORT=8081` in `/app/app.env` (lines `KEY=VALUE`); leave HOST as it is.",
        "sed -i 's/^MODE=.*/MODE=prod/; s/^PORT=.*/PORT=8081/' /app/app.env",
        FRESH + '. /app/app.env\nif [ "$MODE$PORT$HOST" = prod80810.0.0.0 ]; then echo 1; else echo 0; fi > '
        "/logs/verifier/reward.txt",
        "/app/app.env",
        ("tamper",),
        "the agent's file is run in the verifier's shell",
        _ENV,
    ),
    Labelled(
        "audit-list-as-text",
        "Write the names in `/app/users.csv` of people aged 30 or older to `/app/adults.json` as a JSON list.",
        'echo \'["Ann", "Bo"]\' > /app/adults.json',
        FRESH + _is("/app/adults.json", '["Ann", "Bo"]') + REWARD,
        "/app/adults.json",
        ("mutants",),
        "JSON in another spacing is refused",
        _USERS,
    ),
    Labelled(
        "audit-number-as-text",
        "Write the mean of the numbers in `/app/x.txt` to `/app/mean.txt`.",
        "awk '{ s += $1 } END { print s / NR }' /app/x.txt > /app/mean.txt",
        FRESH + _is("/app/mean.txt", "6.1") + REWARD,
        "/app/mean.txt",
        ("mutants",),
        "6.10 is refused",
        "RUN printf '%s\\n' 4.1 7.7 9.3 2.8 6.6 > /app/x.txt",
    ),
    _pytest(
        "audit-key-unsaid",
        "Write a JSON object with the number of ERROR lines of `/app/app.log` to `/app/out.json`.",
        "echo '{\"error_count\": 4}' > /app/out.json",
        "import json\n\n\ndef test_count():\n    assert json.loads(read('/app/out.json')) == {'error_count': 4}\n",
        "/app/out.json",
        "static",
        why="the key is named nowhere",
        lines=_LOG,
    ),
    _pytest(
        "audit-example-is-it",
        _TALLY % (4, 1, 1),
        _SOLVE_TALLY,
        _TALLY_TEST,
        "/app/levels.json",
        "leak",
        why="the example in the instruction is the answer",
        lines=_LOG,
    ),
    _pytest(
        "good-audit-example-of-another",
        _TALLY % (7, 3, 2),
        _SOLVE_TALLY,
        _TALLY_TEST,
        "/app/levels.json",
        why="the good twin: the example is of another log",
        lines=_LOG,
    ),
    _base(
        "audit-table-of-answers",
        "grading",
        '[("cup", 1042), ("hat", 217), ("pen", 1138)]',
        "leak",
        why="a table that nobody speaks of holds the answer",
    ),
    _base("good-audit-other-table", "grading", '[("cup", 1), ("hat", 2), ("pen", 3)]', why="grades of something else"),
)
