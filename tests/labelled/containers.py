"""Verifiers of archives, data bases, queries, renamed files and modules: names looked at and not contents, and good twins."""

from __future__ import annotations

from tests.labelled.mini import Labelled
from tests.labelled.moved_inputs import PYTEST, READ
from tests.labelled.statuses import FRESH


def _case(
    case_id: str, ask: str, solve: str, test: str, artifact: str, *caught_by: str, why: str, lines: str = ""
) -> Labelled:
    files = {"tests/test_outputs.py": READ + test}
    return Labelled(case_id, ask, solve, PYTEST, artifact, caught_by, why, lines, files)


_PACK = "Pack the files of `/app/docs` into `/app/docs.tar` (names relative to `/app/docs`)."
_SOLVE_PACK = "tar -C /app/docs -cf /app/docs.tar a.md b.md c.md"
_DOCS = 'RUN mkdir /app/docs && for n in a b c; do echo "text of $n" > /app/docs/$n.md; done'
_PACKED = """import io
import tarfile


def test_members():
    with open(os.open("/app/docs.tar", os.O_RDONLY | os.O_NOFOLLOW), "rb") as f:
        archive = tarfile.open(fileobj=io.BytesIO(f.read(99999)))
    files = [member for member in archive if not member.isdir()]
    assert all(member.isreg() for member in files)
    assert EXPRESSION
"""
_NAMES = '{os.path.normpath(m.name) for m in files} == {"a.md", "b.md", "c.md"}'
_CONTENTS = (
    "{os.path.normpath(m.name): archive.extractfile(m).read() for m in files} == "
    '{f"{n}.md": f"text of {n}\\n".encode() for n in "abc"}'
)
_LOAD = "Load `/app/users.csv` into a table `users(id, name, age)` of a new SQLite data base `/app/users.db`."
_SOLVE_LOAD = """python3 - <<'EOF'
import csv, sqlite3
base = sqlite3.connect("/app/users.db")
base.execute("create table users(id integer, name text, age integer)")
base.executemany("insert into users values (:id, :name, :age)", list(csv.DictReader(open("/app/users.csv"))))
base.commit()
EOF"""
_USERS = "RUN printf '%s\\n' 'id,name,age' '3,Ann,31' '1,Bo,45' '2,Cy,28' > /app/users.csv"
_LOADED = """import sqlite3


def test_table():
    with open(os.open("/app/users.db", os.O_RDONLY | os.O_NOFOLLOW), "rb") as f:
        content = f.read(999999)
    base = sqlite3.connect(":memory:")
    base.deserialize(content)
    rows = base.execute("QUERY").fetchall()
    assert sorted(rows) == EXPECTED
"""
_QUERY = (
    "Write to `/app/query.sql` a query on the table `sales(item, qty)` that gives item and total `qty` of the item with "
    "the largest total. There are no ties. It will be run with SQLite."
)
_SOLVE_QUERY = "echo 'SELECT item, SUM(qty) AS s FROM sales GROUP BY item ORDER BY s DESC LIMIT 1' > /app/query.sql"
_ROOT = "`/app/root.py` has `root(x)`, the integer square root. It must raise ValueError for negative x."
_SOLVE_ROOT = (
    'printf \'def root(x):\\n    if x < 0:\\n        raise ValueError("x must not be negative")\\n'
    "    return int(x ** 0.5)\\n' > /app/root.py"
)
_OLD_ROOT = "RUN printf 'def root(x):\\n    return int(x ** 0.5)\\n' > /app/root.py"
_TEST_ROOT = """import sys

import pytest

sys.path.append("/app")
from root import root


def test_negative():
    with pytest.raises(ValueErrorMATCH):
        root(-4)
"""
_KELVIN = "Write `/app/temp.py` with a function `to_kelvin` that turns degrees Celsius into kelvins."
_CLOCK = (
    "Repair `/app/src/clock.py`: given `HH:MM` it should print the minutes since midnight, but fails in the afternoon."
)
_PROGRAM = 'import sys\\n\\nhours, minutes = sys.argv[1].split(":")\\nprint(int(hours) {} * 60 + int(minutes))\\n'
_CLOCK_IS = (
    FRESH + "chmod 700 /tests\nr=1\nfor p in 12:00=720 23:59=1439 00:01=1; do\n"
    '    [ "$(timeout -s KILL 5 runuser -u agent -- python3 -I /app/src/clock.py ${p%=*} 2>/dev/null | head -c 99)" = '
    "${p#*=} ] || r=0\ndone\necho $r > /logs/verifier/reward.txt"
)

CASES = (
    _case(
        "container-names",
        _PACK,
        _SOLVE_PACK,
        _PACKED.replace("EXPRESSION", _NAMES),
        "/app/docs.tar",
        "mutants",
        why="empty files of the right names pass",
        lines=_DOCS,
    ),
    _case(
        "good-container-contents",
        _PACK,
        _SOLVE_PACK,
        _PACKED.replace("EXPRESSION", _CONTENTS),
        "/app/docs.tar",
        why="the good twin; what stands behind an archive's end is none of its members",
        lines=_DOCS,
    ),
    _case(
        "container-table-without-rows",
        _LOAD,
        _SOLVE_LOAD,
        _LOADED.replace("QUERY", "select name from pragma_table_info('users')").replace(
            "EXPECTED", "[('age',), ('id',), ('name',)]"
        ),
        "/app/users.db",
        "mutants",
        why="an empty table passes",
        lines=_USERS,
    ),
    _case(
        "good-container-rows",
        _LOAD,
        _SOLVE_LOAD,
        _LOADED.replace("QUERY", "select id, name, age from users").replace(
            "EXPECTED", "[(1, 'Bo', 45), (2, 'Cy', 28), (3, 'Ann', 31)]"
        ),
        "/app/users.db",
        why="the good twin",
        lines=_USERS,
    ),
    _case(
        "good-container-query",
        _QUERY,
        _SOLVE_QUERY,
        "import sqlite3\n\n\ndef test_query():\n    text = read('/app/query.sql')\n"
        "    for rows, want in (([('a', 5), ('b', 7)], ('b', 7)), ([('a', 5), ('b', 7), ('a', 4)], ('a', 9))):\n"
        "        base = sqlite3.connect(':memory:')\n        base.execute('create table sales(item text, qty int)')\n"
        "        base.executemany('insert into sales values (?, ?)', rows)\n"
        "        assert base.execute(text).fetchall() == [want]\n",
        "/app/query.sql",
        why="a number in a query is not the answer",
    ),
    _case(
        "good-container-renamed",
        "In `/app/pics` rename every `NAME.JPEG` to `NAME.jpg`; contents stay.",
        "cd /app/pics && for f in *.JPEG; do mv $f ${f%.JPEG}.jpg; done",
        "def test_names():\n    found = {name: read('/app/pics/' + name) for name in os.listdir('/app/pics')}\n"
        "    assert found == {'a.jpg': 'one\\n', 'b.jpg': 'two\\n', 'c.png': 'no\\n'}\n",
        "/app/pics",
        why="files that were moved are not written otherwise",
        lines="RUN mkdir /app/pics && cd /app/pics && echo one > a.JPEG && echo two > b.JPEG && echo no > c.png",
    ),
    _case(
        "container-any-name",
        "Count the rows of `/app/users.csv` below the head and write the number to `/app/count.txt`.",
        "echo 3 > /app/count.txt",
        "import glob\n\n\ndef test_count():\n    assert '3' in [read(path).strip() for path in glob.glob('/app/count*.txt')]\n",
        "/app/count.txt",
        "tamper",
        why="one right answer of many files is enough",
        lines=_USERS,
    ),
    _case(
        "container-message",
        _ROOT,
        _SOLVE_ROOT,
        _TEST_ROOT.replace("MATCH", ", match='x must not be negative'"),
        "/app/root.py",
        "static",
        why="the words of the error are said nowhere",
        lines=_OLD_ROOT,
    ),
    _case(
        "container-parameter",
        _KELVIN,
        "printf 'def to_kelvin(celsius):\\n    return celsius + 273.15\\n' > /app/temp.py",
        "import sys\n\nsys.path.append('/app')\nfrom temp import to_kelvin\n\n\ndef test_kelvin():\n"
        "    assert [to_kelvin(celsius=c) for c in (0, 20)] == [273.15, 293.15]\n",
        "/app/temp.py",
        "static",
        why="the parameter's name is said nowhere",
    ),
    Labelled(
        "container-build-folder",
        _CLOCK,
        f"printf '{_PROGRAM.format('')}' > /app/src/clock.py",
        _CLOCK_IS,
        "/app/src/clock.py",
        ("leak",),
        "the right program lies in a build folder",
        f"RUN mkdir -p /app/src /app/build/lib && printf '{_PROGRAM.format('%% 12')}' > /app/src/clock.py && "
        f"printf '{_PROGRAM.format('')}' > /app/build/lib/clock.py",
    ),
    Labelled(
        "good-container-built-before",
        _CLOCK,
        f"printf '{_PROGRAM.format('')}' > /app/src/clock.py",
        _CLOCK_IS,
        "/app/src/clock.py",
        why="the good twin: what was built is the wrong one",
        lines=f"RUN mkdir -p /app/src /app/build/lib && printf '{_PROGRAM.format('%% 12')}' > /app/src/clock.py && "
        "cp /app/src/clock.py /app/build/lib/clock.py",
    ),
)
