"""Tests of a verifier that never run, or that cannot fail; and a few left out for a reason."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

CLAMP = (
    "Write `/app/clamp.py`: called with three integers LOW HIGH X (LOW <= HIGH) it prints X limited to the range from "
    "LOW to HIGH."
)
SOLVE = """cat > /app/clamp.py <<'EOF'
import sys
low, high, x = map(int, sys.argv[1:4])
print(max(low, min(high, x)))
EOF"""
PYTEST = "chmod 700 /tests\ncd /\npython3 -I -m pytest -q -p no:cacheprovider"
_RUN = """import subprocess


def clamp(*words):
    command = ["timeout", "-s", "KILL", "5", "runuser", "-u", "agent", "--", "python3", "-I", "/app/clamp.py"]
    run = subprocess.run([*command, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.stdout.strip()


"""
_CASES = (
    ("inside", "0, 10, 5", 5),
    ("below", "0, 10, -5", 0),
    ("above", "0, 10, 50", 10),
    ("negative", "-9, -3, -20", -9),
    ("point", "4, 4, 9", 4),
)


def module(mark: str = "", head: str = "", first: int = 1) -> str:
    """A module of five tests; ``mark`` stands above all but the ``first`` ones."""
    made = [
        f'{mark if number >= first else ""}def test_{name}():\n    assert clamp({words}) == b"{want}"\n'
        for number, (name, words, want) in enumerate(_CASES)
    ]
    return head + _RUN + "\n\n".join(made)


def _clamp(case_id: str, test: str, *caught_by: str, why: str, **files: str) -> Labelled:
    named = {f"tests/{name.replace('__', '.')}": text for name, text in files.items()}
    return Labelled(case_id, CLAMP, SOLVE, f"{FRESH}{test}", "/app/clamp.py", caught_by, why, "", named)


_SKIPIF = '@pytest.mark.skipif("CLAMP_FULL" not in os.environ, reason="slow")\n'
_HOOK = "def pytest_collection_modifyitems(items):\n    del items[1:]\n"
_MARKED = "[pytest]\naddopts = -m smoke\nmarkers = smoke: quick ones\n"

CASES = (
    _clamp(
        "skips-by-skipif",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        "skip_ratio",
        why="four of five tests wait for a variable that nothing sets",
        test_clamp__py=module(_SKIPIF, "import os\n\nimport pytest\n\n"),
    ),
    _clamp(
        "skips-by-collection-hook",
        f"{PYTEST} /tests/test_clamp.py > /dev/null 2>&1{REWARD}",
        "skip_ratio",
        why="a conftest.py drops all tests but the first",
        conftest__py=_HOOK,
        test_clamp__py=module(),
    ),
    _clamp(
        "skips-by-keyword",
        f"{PYTEST} /tests/test_clamp.py -k inside{REWARD}",
        "skip_ratio",
        why="-k selects one test of five",
        test_clamp__py=module(),
    ),
    _clamp(
        "skips-by-ini-marker",
        f"{PYTEST} -c /tests/pytest.ini /tests/test_clamp.py{REWARD}",
        "skip_ratio",
        why="the ini file selects a marker that one test carries",
        pytest__ini=_MARKED,
        test_clamp__py=module()
        .replace("def test_inside", "@pytest.mark.smoke\ndef test_inside", 1)
        .replace("import subprocess", "import subprocess\n\nimport pytest", 1),
    ),
    _clamp(
        "skips-by-importorskip",
        f"{PYTEST} /tests/test_first.py /tests/test_clamp.py{REWARD}",
        "skip_ratio",
        "mutants",
        why="the module with the real tests skips itself, since a package is not there",
        test_first__py=_RUN + 'def test_inside():\n    assert clamp(0, 10, 5) == b"5"\n',
        test_clamp__py="import pytest\n\npytest.importorskip('numpy_clamp_helper')\n" + module(first=0),
    ),
    _clamp(
        "skips-in-the-body",
        f"{PYTEST} /tests/test_clamp.py > /logs/verifier/log.txt{REWARD}",
        "skip_ratio",
        why="the tests skip themselves when a golden file is absent, and it always is",
        test_clamp__py="import os\n\nimport pytest\n\n"
        + module().replace(
            "    assert", "    os.path.exists('/tests/golden.json') or pytest.skip('no golden')\n    assert"
        ),
    ),
    _clamp(
        "skips-by-file-pattern",
        "chmod 700 /tests\ncd /tests\npython3 -m unittest discover -q -s /tests -p 'unit_*.py' > /tmp/log 2>&1\n"
        "if grep -q 'FAILED\\|Traceback' /tmp/log; then echo 0; else echo 1; fi > /logs/verifier/reward.txt",
        "noop",
        why="no file has such a name, and no failure counts as a pass",
        test_clamp__py=module(),
    ),
    _clamp(
        "skips-test-names",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        "mutants",
        why="four functions are named check_, which pytest does not collect",
        test_clamp__py=module().replace("def test_", "def check_").replace("def check_inside", "def test_inside"),
    ),
    _clamp(
        "skips-break-in-loop",
        "chmod 700 /tests\nreward=0\nwhile read -r low high x want; do\n"
        "    got=$(timeout -s KILL 5 runuser -u agent -- python3 -I /app/clamp.py $low $high $x 2>/dev/null < /dev/null | head -c 99 | tr -d '\\000')\n"
        '    if [ "$got" = "$want" ]; then reward=1; break; fi\ndone <<\'EOF\'\n0 10 5 5\n0 10 -5 0\n0 10 50 10\nEOF\n'
        "echo $reward > /logs/verifier/reward.txt",
        "mutants",
        why="one right case of three is enough",
    ),
    _clamp(
        "skips-stdin-eaten",
        "chmod 700 /tests\nreward=1\nwhile read -r low high x want; do\n"
        "    got=$(timeout -s KILL 5 runuser -u agent -- sh -c 'python3 -I /app/clamp.py \"$@\"; cat' - $low $high $x 2>/dev/null | head -n 1 | head -c 99 | tr -d '\\000')\n"
        '    [ "$got" = "$want" ] || reward=0\ndone <<\'EOF\'\n0 10 5 5\n0 10 -5 0\n0 10 50 10\nEOF\n'
        "echo $reward > /logs/verifier/reward.txt",
        "mutants",
        why="the command inside the loop reads the other cases from stdin, so that only the first is judged",
    ),
    _clamp(
        "vacuous-tuple-assert",
        f"{PYTEST} -W ignore /tests/test_clamp.py{REWARD}",
        "noop",
        why="assert (condition, message) is always true",
        test_clamp__py=_RUN + 'def test_all():\n    assert (clamp(0, 10, 50) == b"10", "above")\n',
    ),
    _clamp(
        "vacuous-generator",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        "noop",
        why="a generator expression is true whatever it would yield",
        test_clamp__py=_RUN + 'def test_all():\n    assert (clamp(0, 10, x) == b"10" for x in (50, 60))\n',
    ),
    _clamp(
        "vacuous-return",
        f"{PYTEST} -W ignore /tests/test_clamp.py{REWARD}",
        "noop",
        why="the tests return comparisons instead of asserting them",
        test_clamp__py=module().replace("    assert ", "    return "),
    ),
    _clamp(
        "vacuous-if-exists",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        "noop",
        why="the test judges only where the file is there",
        test_clamp__py="import os\n"
        + _RUN
        + 'def test_all():\n    if os.path.exists("/app/clamp.py"):\n        assert clamp(0, 10, 50) == b"10"\n'
        '        assert clamp(0, 10, -5) == b"0"\n        assert clamp(0, 10, 5) == b"5"\n',
    ),
    _clamp(
        "good-skips-none",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        why="the good twin: all five run",
        test_clamp__py=module(),
    ),
    _clamp(
        "good-skips-one-for-a-reason",
        f"{PYTEST} -rs /tests/test_clamp.py{REWARD}",
        why="looks like skipped tests: one of five, elsewhere than here",
        test_clamp__py="import sys\n\nimport pytest\n\n"
        + module('@pytest.mark.skipif(sys.platform == "win32", reason="not on Windows")\n', first=4),
    ),
    _clamp(
        "good-skips-variable-set",
        f"export CLAMP_FULL=1\n{PYTEST} /tests/test_clamp.py{REWARD}",
        why="looks like tests behind a variable: the script sets it",
        test_clamp__py=module(_SKIPIF, "import os\n\nimport pytest\n\n"),
    ),
    _clamp(
        "good-skips-parametrized",
        f"{PYTEST} /tests/test_clamp.py{REWARD}",
        why="looks like one test: it is run with five cases",
        test_clamp__py="import pytest\n"
        + _RUN
        + '@pytest.mark.parametrize(("words", "want"), [((0, 10, 5), b"5"), ((0, 10, -5), b"0"), ((0, 10, 50), b"10"), '
        '((-9, -3, -20), b"-9"), ((4, 4, 9), b"4")])\ndef test_clamp(words, want):\n    assert clamp(*words) == want\n',
    ),
)
