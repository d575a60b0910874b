"""Verifiers of settings, lists, tables of Markdown, queries and small programs that look at form and not at content."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.reports import python
from tests.labelled.statuses import FRESH

SETTINGS = (
    "`/app/old.ini` has `key=value` lines. Write `/app/new.ini` with the same keys in the same order, the value of `port` "
    "changed to 80 and nothing else changed."
)
OLD = "RUN printf '%s\\n' host=web.local port=8080 mode=safe retries=3 > /app/old.ini"
SOLVE_SETTINGS = "sed 's/^port=.*/port=80/' /app/old.ini > /app/new.ini"


def _settings(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, SETTINGS, SOLVE_SETTINGS, code, "/app/new.ini", caught_by, why, OLD)


NUMBERS = (
    "`/app/values.txt` has one integer a line. Write them sorted, smallest first, one a line, to `/app/sorted.txt`."
)
VALUES = "RUN printf '%s\\n' 40 7 19 7 112 3 > /app/values.txt"
SOLVE_NUMBERS = "sort -n /app/values.txt > /app/sorted.txt"
_INTEGERS = (
    "try:\n    found = [int(x) for x in got.decode('ascii').split()]\nexcept ValueError:\n    found = []\n"
    "want = [3, 7, 7, 19, 40, 112]\n"
)


def _numbers(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    test = python(_INTEGERS + code, "/app/sorted.txt")
    return Labelled(case_id, NUMBERS, SOLVE_NUMBERS, test, "/app/sorted.txt", caught_by, why, VALUES)


PEOPLE = (
    "`/app/people.csv` has the columns `name`, `born`, `city`. Write `/app/people.json`: a list of objects with the keys "
    "`name`, `born` (a number) and `city`, in the file's order."
)
ROWS = "RUN printf '%s\\n' name,born,city Ada,1815,London Alan,1912,Wilmslow Grace,1906,'New York' > /app/people.csv"
SOLVE_PEOPLE = (
    "python3 -c \"import csv, json; rows = list(csv.DictReader(open('/app/people.csv'))); "
    "json.dump([{**row, 'born': int(row['born'])} for row in rows], open('/app/people.json', 'w'))\""
)
_PEOPLE = """import json
try:
    data = json.loads(got)
except (ValueError, RecursionError):
    data = None
data = data if isinstance(data, list) and all(isinstance(x, dict) for x in data) else []
want = [('Ada', 1815, 'London'), ('Alan', 1912, 'Wilmslow'), ('Grace', 1906, 'New York')]
"""


def _people(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    test = python(_PEOPLE + code, "/app/people.json")
    return Labelled(case_id, PEOPLE, SOLVE_PEOPLE, test, "/app/people.json", caught_by, why, ROWS)


TABLE = (
    "`/app/people.csv` has the columns `name`, `born`, `city`. Write it as a Markdown table to `/app/people.md`: a head, the "
    "line of dashes, a row for each person, in the file's order."
)
SOLVE_TABLE = (
    "{ echo '| name | born | city |'; echo '| --- | --- | --- |'; "
    "tail -n +2 /app/people.csv | sed 's/,/ | /g; s/^/| /; s/$/ |/'; } > /app/people.md"
)


def _table(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, TABLE, SOLVE_TABLE, python(code, "/app/people.md"), "/app/people.md", caught_by, why, ROWS)


DAY = "`/app/people.csv` has the column `born`. Write the first of January of the latest such year, as YYYY-MM-DD, to `/app/day.txt`."
SOLVE_DAY = "echo 1912-01-01 > /app/day.txt"
FIZZ = "Write `/app/wrap.py`: called with a width and a text it prints the text in lines of at most that many characters, broken at spaces."
SOLVE_FIZZ = (
    "cat > /app/wrap.py <<'EOF'\nimport sys, textwrap\nprint(textwrap.fill(sys.argv[2], int(sys.argv[1])))\nEOF"
)
_WRAP = "timeout -s KILL 5 runuser -u agent -- python3 -I /app/wrap.py {words} < /dev/null 2>/dev/null"


def _wrap(case_id: str, test: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, FIZZ, SOLVE_FIZZ, f"{FRESH}chmod 700 /tests\n{test}", "/app/wrap.py", caught_by, why)


_SPACED = '"one two  three"'
_TEXT = '"the quick brown fox jumps over the lazy dog"'
CASES = (
    _settings(
        "form-prefix-of-a-value",
        FRESH + "grep -qs '^port=80' /app/new.ini && grep -qs '^host=web.local' /app/new.ini && "
        '[ "$(grep -c = /app/new.ini)" -eq 4 ]' + REWARD,
        "mutants",
        why="8080 begins with 80, and two keys are not looked at",
    ),
    _settings(
        "form-one-key",
        FRESH + "grep -qsx 'port=80' /app/new.ini" + REWARD,
        "mutants",
        why="the other keys are not judged",
    ),
    _numbers(
        "form-sorted-whatever",
        "ok = len(found) == 6 and found == sorted(found)\n",
        "mutants",
        why="any six sorted numbers pass",
    ),
    _numbers(
        "form-sum-of-the-lines",
        "ok = sum(found) == sum(want)\n",
        "mutants",
        why="the sum alone is judged: neither order nor members",
    ),
    _numbers(
        "form-distinct",
        "ok = sorted(set(found)) == sorted(set(want)) and found == sorted(found)\n",
        "mutants",
        why="a number that stands twice may stand once",
    ),
    _people(
        "form-names-alone",
        "ok = [x.get('name') for x in data] == [w[0] for w in want]\n",
        "mutants",
        why="one key of three is judged",
    ),
    _people(
        "form-first-object",
        "ok = len(data) == 3 and (data[0].get('name'), data[0].get('born'), data[0].get('city')) == want[0]\n",
        "mutants",
        why="the first object is judged, the others are counted",
    ),
    _people(
        "form-types-alone",
        "ok = len(data) == 3 and all(isinstance(x.get('born'), int) and isinstance(x.get('name'), str) and isinstance(x.get('city'), str) for x in data)\n",
        "mutants",
        why="types are judged, values are not",
    ),
    _table(
        "form-count-of-bars",
        "ok = [line.count('|') for line in got.decode('utf-8', 'replace').splitlines()] == [4] * 5\n",
        "mutants",
        why="bars are counted, cells are not read",
    ),
    Labelled(
        "form-any-day",
        DAY,
        SOLVE_DAY,
        python("import re\nok = re.fullmatch(rb'\\d{4}-01-01', got.strip()) is not None\n", "/app/day.txt"),
        "/app/day.txt",
        ("mutants",),
        "any year passes",
        ROWS,
    ),
    _wrap(
        "form-exit-status-alone",
        _WRAP.format(words=f"10 {_TEXT}") + " > /tmp/out" + REWARD,
        "mutants",
        why="the program has to end well, what it prints is not looked at",
    ),
    _wrap(
        "form-width-alone",
        f"out=$({_WRAP.format(words=f'10 {_TEXT}')} | head -c 999 | tr -d '\\000')\n"
        '[ -n "$out" ] && [ "$(printf "%s\\n" "$out" | awk \'length > 10\' | wc -l)" -eq 0 ]' + REWARD,
        "mutants",
        why="lines have to be short, not to be the text",
    ),
    _settings(
        "good-form-settings",
        FRESH + "printf '%s\\n' host=web.local port=80 mode=safe retries=3 > /tmp/want\n"
        '[ "$(head -c 999 /app/new.ini 2>/dev/null | tr -d \'\\000\')" = "$(cat /tmp/want)" ]' + REWARD,
        why="the good twin",
    ),
    _numbers("good-form-sorted", "ok = found == want\n", why="white space between the numbers is left open"),
    _people(
        "good-form-objects",
        "ok = [(x.get('name'), x.get('born'), x.get('city')) for x in data] == want\n",
        why="keys in any order",
    ),
    _table(
        "good-form-cells",
        "rows = [[cell.strip() for cell in line.strip().strip('|').split('|')] for line in got.decode('utf-8', 'replace').splitlines() if line.strip()]\nok = rows[:1] + rows[2:] == [['name', 'born', 'city'], ['Ada', '1815', 'London'], ['Alan', '1912', 'Wilmslow'], ['Grace', '1906', 'New York']] and all(set(c) <= set(':-') and c for c in rows[1]) and len(rows[1]) == 3\n",
        why="cells are read, spaces around them are not",
    ),
    _wrap(
        "good-form-wrap",
        f"out=$({_WRAP.format(words=f'10 {_TEXT}')} | head -c 999 | tr -d '\\000')\n"
        f"wide=$({_WRAP.format(words=f'30 {_SPACED}')} | head -c 999 | tr -d '\\000')\n"
        '[ "$(printf "%s\\n" "$out" | awk \'length > 10\' | wc -l)" -eq 0 ] && [ "$(echo $out)" = "the quick brown fox jumps over the lazy dog" ] && [ "$(echo $wide)" = "one two three" ] && [ "$(printf "%s\\n" "$out" | wc -l)" -le 6 ]'
        + REWARD,
        why="words, width and number of lines, not one certain break",
    ),
)
