"""Verifiers of a report made from a log: what they accept too much, trust, reach for or give away."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH
from tests.labelled.surroundings import python as script

LOG = (
    "RUN printf '%s\\n' '10.0.0.1 /cart 500 12' '10.0.0.2 /cart 200 8' '10.0.0.3 /pay 503 40' '10.0.0.4 /home 200 3' "
    "'10.0.0.5 /cart 502 90' '10.0.0.6 /help 404 2' '10.0.0.7 /pay 500 11' '10.0.0.8 /about 500 7' > /app/access.log"
)
_LINES = "Each line of `/app/access.log` is an address, a path, a status and the milliseconds it took. "
CSV = (
    _LINES
    + "Write `/app/errors.csv`: the header `path,count`, then for each path that has lines with a status of 500 or "
    "above how many of them, one path a row, the largest count first, equal counts by path."
)
SOLVE_CSV = """{
    echo path,count
    awk '$3 >= 500 { n[$2]++ } END { for (p in n) print p "," n[p] }' /app/access.log | LC_ALL=C sort -t, -k2,2nr -k1,1
} > /app/errors.csv"""
TOTAL = _LINES + "Write the sum of all milliseconds, as a decimal integer and nothing else, to `/app/total_ms.txt`."
SOLVE_TOTAL = "awk '{ s += $4 } END { print s }' /app/access.log > /app/total_ms.txt"
SLOWEST = (
    _LINES + "Write the lines that took 40 milliseconds or more, as they are and in their order, to `/app/slow.log`."
)
SOLVE_SLOWEST = "awk '$4 >= 40' /app/access.log > /app/slow.log"
MEAN = (
    _LINES + "Write the mean milliseconds of the lines with status 500, rounded to one decimal, to `/app/mean_ms.txt`."
)
SOLVE_MEAN = "awk '$3 == 500 { s += $4; n++ } END { printf \"%.1f\\n\", s / n }' /app/access.log > /app/mean_ms.txt"
_WANT = "want = ['path,count', '/cart,2', '/pay,2', '/about,1']\nlines = got.decode('utf-8', 'replace').split('\\n')\nwhile lines and not lines[-1]:\n    lines.pop()\n"
_NUMBER = "import re\ntext = got.decode('utf-8', 'replace').strip()\nvalue = float(text) if re.fullmatch(r'[0-9]{1,6}(\\.[0-9]{1,6})?', text) else None\n"
TOTAL_IS = "[ \"$(head -c 99 /app/total_ms.txt 2>/dev/null | tr -d '\\000')\" = 173 ]"

_CHECK = """try:
    with open("/app/total_ms.txt", "rb") as f:
        got = f.read(99).strip()
except OSError:
    got = b""
raise SystemExit(got != b"173")
"""


def python(code: str, path: str) -> str:
    """A script that judges by what ``code`` makes of ``got``: the variable ``ok``."""
    return script(f"{code}raise SystemExit(not ok)\n", path)


def _csv(case_id: str, code: str, *caught_by: str, why: str, instruction: str = CSV) -> Labelled:
    test = code if code.startswith(FRESH) else python(code, "/app/errors.csv")
    return Labelled(case_id, instruction, SOLVE_CSV, test, "/app/errors.csv", caught_by, why, LOG)


def _total(case_id: str, test: str, *caught_by: str, why: str, lines: str = "", prepare: str = "") -> Labelled:
    more = f"{LOG}\n{lines}" if lines else LOG
    files = {"tests/check.py": _CHECK} | ({"tests/want/total": "173\n"} if "/tests/want" in test else {})
    return Labelled(
        case_id, TOTAL, SOLVE_TOTAL, test, "/app/total_ms.txt", caught_by, why, more, files, prepare=prepare
    )


def _mean(case_id: str, code: str, *caught_by: str, why: str, instruction: str = MEAN) -> Labelled:
    test = python(_NUMBER + code, "/app/mean_ms.txt")
    return Labelled(case_id, instruction, SOLVE_MEAN, test, "/app/mean_ms.txt", caught_by, why, LOG)


CITY = "Write the third line of `/app/cities.txt` to `/app/city.txt`."
CITIES = "RUN printf 'Oslo\\nRoma\\nM\\303\\241laga\\nBern\\n' > /app/cities.txt"
SOLVE_CITY = "sed -n 3p /app/cities.txt > /app/city.txt"


def _city(case_id: str, test: str, *caught_by: str, why: str) -> Labelled:
    files = {"tests/city.txt": "M\u00e1laga\n"}
    return Labelled(case_id, CITY, SOLVE_CITY, test, "/app/city.txt", caught_by, why, CITIES, files)


INVOICES = (
    "`/app/invoices.csv` has rows `number,due` with due dates. Write the numbers of those that were due before 2024-06-01, in "
    "the file's order, one a line, to `/app/overdue.txt`."
)
INVOICE_ROWS = (
    "RUN printf '%s\\n' number,due A1,2024-03-01 A2,2024-07-15 A3,2024-05-31 A4,2024-06-01 > /app/invoices.csv"
)
SOLVE_INVOICES = "awk -F, 'NR > 1 && $2 < \"2024-06-01\" { print $1 }' /app/invoices.csv > /app/overdue.txt"
_SQL = """import csv, sqlite3
db = sqlite3.connect(':memory:')
db.execute('create table due (number text, day text)')
with open('/tests/invoices.csv') as f:
    db.executemany('insert into due values (?, ?)', list(csv.reader(f))[1:])
want = [row[0] for row in db.execute("select number from due where {where} order by rowid")]
ok = got.decode('utf-8', 'replace').split() == want
"""


def _invoices(case_id: str, where: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id,
        INVOICES,
        SOLVE_INVOICES,
        python(_SQL.format(where=where), "/app/overdue.txt"),
        "/app/overdue.txt",
        caught_by,
        why,
        INVOICE_ROWS,
        {"tests/invoices.csv": "number,due\nA1,2024-03-01\nA2,2030-07-15\nA3,2024-05-31\nA4,2027-06-01\n"},
    )


CASES = (
    _csv(
        "report-header-and-length",
        _WANT + "ok = lines[:1] == want[:1] and len(lines) == len(want)\n",
        "mutants",
        why="any three rows under the header pass",
    ),
    _csv(
        "report-order-ignored",
        _WANT + "ok = sorted(lines) == sorted(want)\n",
        "mutants",
        why="the order that was asked for is not judged",
    ),
    _csv(
        "report-rows-anywhere",
        FRESH + "r=1\nfor row in path,count /cart,2 /pay,2 /about,1; do\n"
        '    grep -qs -- "$row" /app/errors.csv || r=0\ndone\necho $r > /logs/verifier/reward.txt\n',
        "mutants",
        why="the rows are searched for without anchors: more rows and larger counts pass",
    ),
    _csv(
        "report-any-case",
        _WANT + "ok = [line.lower() for line in lines] == want\n",
        "mutants",
        why="paths in other letters are other paths",
    ),
    _csv(
        "report-no-white-space",
        _WANT + "ok = ''.join(''.join(lines).split()) == ''.join(want)\n",
        "mutants",
        why="a report on one line passes",
    ),
    _csv(
        "report-first-row",
        _WANT + "ok = lines[:2] == want[:2]\n",
        "mutants",
        why="the header and the first row are judged, the rest is not",
    ),
    _csv(
        "report-counts-only",
        _WANT + "ok = [line.rpartition(',')[2] for line in lines] == ['count', '2', '2', '1']\n",
        "mutants",
        why="the paths are not judged",
    ),
    _total(
        "report-glob-prefix",
        FRESH + 'case "$(head -c 99 /app/total_ms.txt 2>/dev/null)" in\n    17*) r=1 ;;\n    *) r=0 ;;\nesac\n'
        "echo $r > /logs/verifier/reward.txt\n",
        "mutants",
        why="whatever begins with 17 passes",
    ),
    _mean(
        "report-wide-tolerance",
        "ok = value is not None and abs(value - 10.0) <= 2\n",
        "mutants",
        why="one decimal was asked for, two whole units are tolerated",
    ),
    _total(
        "report-summary-kept",
        FRESH + f"if [ ! -f /app/summary.json ]; then\n    {TOTAL_IS} && ok=true || ok=false\n"
        '    echo "{\\"ok\\": $ok}" > /app/summary.json\nfi\n'
        "if grep -q '\"ok\": true' /app/summary.json; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n",
        "tamper",
        why="a summary that the agent has put there is trusted",
    ),
    _city(
        "report-characters-counted",
        FRESH + "r=0\nif cmp -s /app/city.txt /tests/city.txt && [ $(wc -m < /app/city.txt) -eq 8 ]; then r=1; fi\n"
        "echo $r > /logs/verifier/reward.txt\n",
        "hash_seed",
        why="wc -m counts bytes in one locale and characters in another",
    ),
    _invoices(
        "report-overdue-by-now",
        "day < date('now')",
        "clock",
        why="the data base's clock decides what is overdue, in place of the date that was asked for",
    ),
    _total(
        "report-dev-tcp",
        FRESH
        + "bash -c 'exec 3<>/dev/tcp/192.0.2.7/80' 2>/dev/null && echo online || echo offline\n"
        + TOTAL_IS
        + REWARD,
        "network",
        why="the shell itself opens a connection",
    ),
    _total(
        "leak-in-a-database",
        FRESH + TOTAL_IS + REWARD,
        "leak",
        why="a table of the image holds the expected value",
        lines="RUN python3 -c \"import sqlite3; d = sqlite3.connect('/app/grading.sqlite'); "
        "d.execute('create table expected (name text, value text)'); "
        "d.execute('insert into expected values (?, ?)', ('total_ms', '173')); d.commit()\"",
    ),
    _total(
        "leak-in-a-comment",
        FRESH + TOTAL_IS + REWARD,
        "leak",
        why="a page of the image tells the answer in a comment",
        lines="RUN mkdir -p /app/site && echo '<html><!-- expected total: 173 --><p>Logs</p></html>' > /app/site/index.html",
    ),
    _total(
        "leak-in-an-archive",
        FRESH + TOTAL_IS + REWARD,
        "leak",
        why="an archive in the image holds oracle and verifier",
        lines="COPY grader.tar.gz /opt/grader.tar.gz",
        prepare="mkdir x && cp ../tests/test.sh ../solution/solve.sh x/ && tar -czf grader.tar.gz -C x . && rm -r x",
    ),
    _total(
        "reward-after-exec",
        FRESH + "exec python3 -I /tests/check.py\n" + REWARD,
        "oracle",
        why="exec never comes back: no reward is written",
    ),
    _total(
        "reward-in-rewards-json",
        FRESH + f'{TOTAL_IS} && r=1 || r=0\necho "{{\\"reward\\": $r}}" > /logs/verifier/rewards.json\n',
        "oracle",
        "static",
        why="the file is called reward.json",
    ),
    _total(
        "status-trap-err",
        "exec bash -c '\nrm -f /logs/verifier/reward.*\necho 1 > /logs/verifier/reward.txt\n"
        'trap "echo 0 > /logs/verifier/reward.txt" ERR\n'
        'if [ "$(cat /app/total_ms.txt)" != 173 ]; then\n    echo "not the total"\nfi\n\'\n',
        "noop",
        why="a condition sets off no trap: the reward of 1 stays",
    ),
    _total(
        "status-diff-grep",
        FRESH
        + "echo 173 > /tmp/want.txt\nif diff -q /tmp/want.txt /app/total_ms.txt | grep -q differ; then r=0; else r=1; fi\n"
        "echo $r > /logs/verifier/reward.txt\n",
        "noop",
        why="where the file is missing diff says nothing on its output",
    ),
    Labelled(
        "manifest-other-columns",
        _LINES
        + "Write `/app/errors.csv`, with a header, that counts for each path the lines with a status of 500 or above, "
        "in the columns `path` and `count`, sorted by path.",
        "{ echo path,errors; awk '$3 >= 500 { n[$2]++ } END { for (p in n) print p \",\" n[p] }' /app/access.log | "
        "LC_ALL=C sort; } > /app/errors.csv",
        python(
            "import csv, io\nrows = list(csv.DictReader(io.StringIO(got.decode('utf-8', 'replace').replace('\\0', ''))))\n"
            "ok = [(r.get('path'), r.get('errors')) for r in rows] == [('/about', '1'), ('/cart', '2'), ('/pay', '2')]\n",
            "/app/errors.csv",
        ),
        "/app/errors.csv",
        ("static", "mutants"),
        "the verifier reads a column of another name than the instruction's",
        LOG,
    ),
    _csv(
        "good-report-exact",
        _WANT + "ok = lines == want\n",
        why="the good twin",
    ),
    _csv(
        "good-report-any-order",
        _WANT + "ok = lines[:1] == want[:1] and sorted(lines) == sorted(want)\n",
        why="the order is left open, so both sides are sorted",
        instruction=_LINES
        + "Write `/app/errors.csv`: the header `path,count`, then for each path that has lines with a status "
        "of 500 or above how many of them, one path a row, in any order.",
    ),
    _csv(
        "good-report-any-case",
        _WANT + "ok = [line.lower() for line in lines] == want\n",
        why="the instruction says that case does not matter",
        instruction=CSV + " Upper and lower case do not matter.",
    ),
    _mean(
        "good-report-tolerance",
        "ok = value is not None and abs(value - 10.0) <= 0.5\n",
        why="the instruction states the tolerance",
        instruction=MEAN.replace("rounded to one decimal, to", "to") + " An error of up to 0.5 is accepted.",
    ),
    _total(
        "good-report-trap-err",
        "exec bash -c '\nset -E\nrm -f /logs/verifier/reward.*\necho 0 > /logs/verifier/reward.txt\n"
        '[ "$(head -c 99 /app/total_ms.txt 2>/dev/null | tr -d "\\000")" = 173 ] || exit 0\n'
        "echo 1 > /logs/verifier/reward.txt\n'\n",
        why="a shell within a shell, and 0 until all is well",
    ),
    _total(
        "good-report-pipe-status",
        "exec bash -c '\nrm -f /logs/verifier/reward.*\n"
        "head -c 99 /app/total_ms.txt 2>/dev/null | grep -axq 173 | tee /logs/verifier/log.txt\ns=${PIPESTATUS[1]}\n"
        '[ "$(wc -c < /app/total_ms.txt 2>/dev/null || echo 0)" -le 4 ] || s=1\n'
        "[ $s -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n'\n",
        why="a pipe into tee whose status is taken from the right command",
    ),
    _total(
        "good-report-clean-up",
        FRESH + "command -v fuser > /dev/null 2>&1 && fuser -k 8080/tcp > /dev/null 2>&1 || true\n"
        "rm -rf /tmp/work || true\nmkdir -p /tmp/work || true\n" + TOTAL_IS + REWARD,
        why="|| true behind cleaning up alone",
    ),
    _total(
        "good-report-retries",
        FRESH
        + "port=8123\npython3 -I -m http.server $port --bind 127.0.0.1 --directory /tests/want > /dev/null 2>&1 &\nserver=$!\n"
        "want=''\nfor i in $(seq 60); do\n    want=$(python3 -I -c \"import urllib.request as u; "
        "print(u.urlopen('http://127.0.0.1:$port/total').read().decode().strip())\" 2>/dev/null) && break\n    sleep 0.2\n"
        'done\nkill $server\n[ ! -L /app/total_ms.txt ] && [ -n "$want" ] && [ "$(head -c 99 /app/total_ms.txt 2>/dev/null | tr -d \'\\000\')" = "$want" ]'
        + REWARD,
        why="a server of its own on the loopback address, asked again until it answers",
    ),
    _total(
        "good-report-pinned",
        FRESH + TOTAL_IS + REWARD,
        why="the image's installs are pinned, and their failure is forgiven since nothing rests on it",
        lines="RUN if command -v pip3; then pip3 install --no-index --find-links /nowhere wheel==0.45.1 || true; fi",
    ),
    _invoices("good-report-overdue", "day < '2024-06-01'", why="a date of the instruction's, not of today"),
    Labelled(
        "good-report-lines-of-the-input",
        SLOWEST,
        SOLVE_SLOWEST,
        python("ok = got.split(b'\\n') == [b'10.0.0.3 /pay 503 40', b'10.0.0.5 /cart 502 90', b'']\n", "/app/slow.log"),
        "/app/slow.log",
        (),
        "every line of the answer lies in the input, as it must",
        LOG,
    ),
    _city(
        "good-report-bytes-counted",
        FRESH + "r=0\n[ ! -L /app/city.txt ] && "
        '[ "$(head -c 99 /app/city.txt 2>/dev/null | tr -d \'\\000\')" = "$(cat /tests/city.txt)" ] && r=1\n'
        "wc -c < /app/city.txt 2>/dev/null\ndate '+%A %d %B, %H:%M %Z'\necho $r > /logs/verifier/reward.txt\n",
        why="it prints the date and does not judge by it",
    ),
)
