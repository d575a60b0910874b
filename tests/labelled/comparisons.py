"""Comparisons that accept too much, or refuse what is right; in scripts."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH, NUMBERS, SOLVE_SUM, SUM
from tests.labelled.surroundings import python

NAMES = "RUN printf '%s\\n' mia bo ada mia zoe bo > /app/names.txt"
SORT = "Write the distinct lines of `/app/names.txt`, sorted by byte value, one a line, to `/app/unique.txt`."
SOLVE_SORT = "LC_ALL=C sort -u /app/names.txt > /app/unique.txt"
UPPER = "Write the first line of `/app/names.txt` in capital letters to `/app/upper.txt`."
SOLVE_UPPER = "head -n 1 /app/names.txt | tr a-z A-Z > /app/upper.txt"
MEAN = "Write the mean of the integers in `/app/numbers.txt` with two decimals to `/app/mean.txt`."
SOLVE_MEAN = "awk '{ s += $1 } END { printf \"%.2f\\n\", s / NR }' /app/numbers.txt > /app/mean.txt"
JSON = (
    'Write `/app/stats.json`: an object with the keys "min", "max" and "count" of the integers in `/app/numbers.txt`.'
)
SOLVE_JSON = 'echo \'{"min": -3, "max": 26, "count": 4}\' > /app/stats.json'


def _sum(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    test = code if code.startswith(FRESH) else python(code, "/app/total.txt")
    return Labelled(case_id, SUM, SOLVE_SUM, test, "/app/total.txt", caught_by, why, NUMBERS)


def _sort(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id, SORT, SOLVE_SORT, python(code, "/app/unique.txt"), "/app/unique.txt", caught_by, why, NAMES
    )


def _mean(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, MEAN, SOLVE_MEAN, python(code, "/app/mean.txt"), "/app/mean.txt", caught_by, why, NUMBERS)


def _json(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id, JSON, SOLVE_JSON, python(code, "/app/stats.json"), "/app/stats.json", caught_by, why, NUMBERS
    )


_LINES = "got = got.decode('utf-8', 'replace').split('\\n')\nwant = ['ada', 'bo', 'mia', 'zoe']\n"
_NUMBER = "import re\ntext = got.strip()\nvalue = float(text) if re.fullmatch(rb'[+-]?[0-9]{1,9}(\\.[0-9]{1,9})?', text) else None\n"
_PARSED = "import json\ntry:\n    data = json.loads(got)\nexcept ValueError:\n    data = None\nwant = {'min': -3, 'max': 26, 'count': 4}\n"

CASES = (
    _sum(
        "compare-substring",
        f"{FRESH}grep -qs 42 /app/total.txt{REWARD}",
        "mutants",
        why="142 and 420 hold a 42 as well",
    ),
    _sum(
        "compare-any-line",
        f"{FRESH}grep -qsx 42 /app/total.txt{REWARD}",
        "mutants",
        why="one line of many is enough: a list of all numbers passes",
    ),
    _sum(
        "compare-prefix",
        "raise SystemExit(not got.startswith(b'42'))\n",
        "mutants",
        why="whatever follows the number is not looked at",
    ),
    _sum(
        "compare-first-number",
        "import re\nfound = re.findall(rb'-?[0-9]+', got)\nraise SystemExit(b'42' not in found)\n",
        "mutants",
        why="any number in the text may be the right one",
    ),
    _sum(
        "compare-absolute-value",
        _NUMBER + "raise SystemExit(value is None or abs(value) != 42)\n",
        "mutants",
        why="the sign is lost",
    ),
    _sum(
        "compare-relative-tolerance",
        _NUMBER + "raise SystemExit(value is None or abs(value - 42) / 42 > 0.1)\n",
        "mutants",
        why="ten per cent, for a number that must be exact",
    ),
    _sum(
        "compare-even",
        _NUMBER + "raise SystemExit(value is None or value % 2 != 0)\n",
        "mutants",
        why="a property of the answer instead of the answer",
    ),
    _sum(
        "compare-positive",
        _NUMBER + "raise SystemExit(value is None or value <= 0)\n",
        "mutants",
        why="any positive number passes",
    ),
    _sum(
        "compare-non-empty",
        f"{FRESH}[ -s /app/total.txt ]{REWARD}",
        "malformed",
        "mutants",
        why="anything that is not empty passes",
    ),
    _sum(
        "compare-nan-escapes",
        "try:\n    value = float(got)\nexcept ValueError:\n    value = 0.0\nraise SystemExit(abs(value - 42) > 1e-9)\n",
        "mutants",
        why="nan is never greater than the tolerance",
    ),
    _sort(
        "compare-as-sets",
        _LINES + "raise SystemExit({line for line in got if line} != set(want))\n",
        "mutants",
        why="order and repetition are lost, and both were asked for",
    ),
    _sort(
        "compare-subset",
        _LINES + "raise SystemExit(not set(want) <= set(got))\n",
        "mutants",
        why="more lines than asked for pass: all candidates",
    ),
    _sort(
        "compare-superset",
        _LINES + "raise SystemExit(not {line for line in got if line} <= set(want))\n",
        "noop",
        why="the empty set is part of every set",
    ),
    _sort(
        "compare-zip",
        _LINES
        + "pairs = list(zip([line for line in got if line], want))\nraise SystemExit(not pairs or any(a != b for a, b in pairs))\n",
        "mutants",
        why="zip ends with the shorter list: the first line alone passes",
    ),
    _sort(
        "compare-count-of-lines",
        _LINES + "raise SystemExit(len([line for line in got if line]) != 4)\n",
        "mutants",
        why="counts lines, and looks at none",
    ),
    _sort(
        "compare-ignores-case",
        "import re\nraise SystemExit(re.sub(rb'\\s+', b' ', got).strip().lower() != b'ada bo mia zoe')\n",
        "mutants",
        why="capital letters pass, and so does everything in one line",
    ),
    Labelled(
        "compare-case-of-capitals",
        UPPER,
        SOLVE_UPPER,
        f"{FRESH}[ \"$(head -c 99 /app/upper.txt 2>/dev/null | tr -d '[:space:]\\000' | tr a-z A-Z)\" = MIA ]{REWARD}",
        "/app/upper.txt",
        ("mutants",),
        "the task is about capital letters, and the comparison ignores them",
        NAMES,
    ),
    _mean(
        "compare-int-of-float",
        _NUMBER + "raise SystemExit(value is None or int(value) != 10)\n",
        "mutants",
        why="the decimals are cut off before they are compared",
    ),
    _mean(
        "compare-rounded-away",
        _NUMBER + "raise SystemExit(value is None or round(value, -1) != 10)\n",
        "mutants",
        why="rounded to tens",
    ),
    Labelled(
        "compare-wider-than-stated",
        "Write the mean of the integers in `/app/numbers.txt` to `/app/mean.txt`. An error of up to 0.1 is accepted.",
        SOLVE_MEAN,
        python(_NUMBER + "raise SystemExit(value is None or abs(value - 10.5) > 5)\n", "/app/mean.txt"),
        "/app/mean.txt",
        ("mutants",),
        "a tolerance fifty times the stated one",
        NUMBERS,
    ),
    Labelled(
        "good-compare-permissions",
        "Write `/app/first.sh`, a shell script with permissions 755 that prints the first line of `/app/names.txt`.",
        "printf '%s\\n' '#!/bin/sh' 'head -n 1 /app/names.txt' > /app/first.sh\nchmod 755 /app/first.sh",
        f'{FRESH}chmod 700 /tests\n[ "$(stat -c %a /app/first.sh)" = 755 ] && [ "$(runuser -u agent -- /app/first.sh)" = mia ]{REWARD}',
        "/app/first.sh",
        (),
        "looks like a verifier that refuses a remark in a script: what takes a file's place must keep its permissions",
        NAMES,
    ),
    Labelled(
        "good-compare-as-stated",
        "Write the mean of the integers in `/app/numbers.txt` to `/app/mean.txt`. An error of up to 0.1 is accepted.",
        SOLVE_MEAN,
        python(_NUMBER + "raise SystemExit(value is None or abs(value - 10.5) > 0.1)\n", "/app/mean.txt"),
        "/app/mean.txt",
        (),
        "the good twin: the stated tolerance",
        NUMBERS,
    ),
    _json(
        "compare-keys-only",
        _PARSED + "raise SystemExit(not (isinstance(data, dict) and set(data) == set(want)))\n",
        "mutants",
        why="the keys are looked at, the values are not",
    ),
    _json(
        "compare-given-keys",
        _PARSED + "raise SystemExit(not (isinstance(data, dict) and all(want.get(k) == v for k, v in data.items())))\n",
        "mutants",
        why="judges only the keys that are there: an empty object passes",
    ),
    _json(
        "compare-one-key",
        _PARSED + "raise SystemExit(not (isinstance(data, dict) and data.get('max') == 26))\n",
        "mutants",
        why="one of three values is judged",
    ),
    _json(
        "compare-layout-of-json",
        'raise SystemExit(got.strip() != b\'{"min": -3, "max": 26, "count": 4}\')\n',
        "mutants",
        why="refuses the same object with other spacing",
    ),
    _sort(
        "good-compare-lines",
        _LINES + "raise SystemExit([line for line in got if line] != want)\n",
        why="the good twin: every line, in order",
    ),
    _mean(
        "good-compare-half-a-unit",
        _NUMBER + "raise SystemExit(value is None or abs(value - 10.5) > 0.005)\n",
        why="looks like a weak tolerance: half a unit of the last decimal",
    ),
    _json(
        "good-compare-json",
        _PARSED + "raise SystemExit(data != want)\n",
        why="the good twin: the whole object, whatever its layout",
    ),
    Labelled(
        "good-compare-capitals",
        UPPER,
        SOLVE_UPPER,
        f"{FRESH}[ \"$(head -c 99 /app/upper.txt 2>/dev/null | tr -d '[:space:]\\000')\" = MIA ]{REWARD}",
        "/app/upper.txt",
        (),
        "the good twin: capitals are demanded",
        NAMES,
    ),
    Labelled(
        "good-compare-number-in-a-sentence",
        "Write to `/app/report.txt` how many lines `/app/names.txt` has.",
        'echo "There are $(wc -l < /app/names.txt) lines." > /app/report.txt',
        f"{FRESH}[ \"$(head -c 99 /app/report.txt 2>/dev/null | tr -d '\\000' | grep -oE '[0-9]+' | head -n 1)\" = 6 ]{REWARD}",
        "/app/report.txt",
        (),
        "looks like a comparison that accepts too much: the number is read out of whatever sentence was written",
        NAMES,
    ),
    Labelled(
        "good-compare-any-case",
        "Write the name that comes first in the alphabet in `/app/names.txt` to `/app/first.txt`. Capital or small letters do not matter.",
        "sort /app/names.txt | head -n 1 > /app/first.txt",
        f"{FRESH}[ \"$(head -c 99 /app/first.txt 2>/dev/null | tr -d '[:space:]\\000' | tr A-Z a-z)\" = ada ]{REWARD}",
        "/app/first.txt",
        (),
        "looks like a comparison that ignores case: the instruction says so",
        NAMES,
    ),
)
