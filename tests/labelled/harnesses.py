"""Verifiers that run tests on a program or call it: runners that run nothing, lose a failure, or only look as if."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

SLUG = (
    "Write `/app/slug.py`: called with one argument, a title, it prints the title in lower case with every run of characters "
    "other than a-z and 0-9 replaced by one `-`, and none at either end."
)
SOLVE_SLUG = """cat > /app/slug.py <<'EOF'
import re
import sys
print(re.sub(r"[^a-z0-9]+", "-", sys.argv[1].lower()).strip("-"))
EOF"""
PYTEST = "chmod 700 /tests\ncd /\npython3 -I -m pytest -q -p no:cacheprovider"
UNITTEST = "chmod 700 /tests\ncd /\npython3 -I /tests/test_slug.py"
CALL = """import subprocess


def slug(title):
    command = ["timeout", "-s", "KILL", "5", "runuser", "-u", "agent", "--", "python3", "-I", "/app/slug.py", title]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()


"""
_CASES = (
    ("plain", "Hello World", "hello-world"),
    ("runs", "a  --  b", "a-b"),
    ("ends", " (note) ", "note"),
    ("digits", "Room 101!", "room-101"),
    ("capitals", "ABC", "abc"),
)


def functions(mark: str = "") -> str:
    """Five tests for pytest; ``mark`` stands above all but the first."""
    return CALL + "\n\n".join(
        f'{mark if number else ""}def test_{name}():\n    assert slug("{title}") == b"{want}"\n'
        for number, (name, title, want) in enumerate(_CASES)
    )


def methods(mark: str = "", names: str = "test_{}") -> str:
    """Five tests for unittest; ``mark`` stands above all but the first."""
    body = "\n".join(
        f"{'    ' + mark if number and mark else ''}    def {names.format(name)}(self):\n"
        f'        self.assertEqual(slug("{title}"), b"{want}")\n'
        for number, (name, title, want) in enumerate(_CASES)
    )
    return f"import os\nimport sys\nimport unittest\n{CALL}class Slugs(unittest.TestCase):\n{body}\n\nunittest.main(verbosity=2)\n"


_SHELL_CALL = 'timeout -s KILL 5 runuser -u agent -- python3 -I /app/slug.py "{title}" < /dev/null 2>/dev/null | head -c 99 | tr -d "\\000"'


def _slug(case_id: str, test: str, *caught_by: str, why: str, **files: str) -> Labelled:
    named = {f"tests/{name.replace('__', '.')}": text for name, text in files.items()}
    return Labelled(case_id, SLUG, SOLVE_SLUG, f"{FRESH}{test}", "/app/slug.py", caught_by, why, "", named)


_CASE_FILE = "".join(f"{title}|{want}\n" for _, title, want in _CASES)
_OK_LINES = "\n".join(
    f'[ "$({_SHELL_CALL.format(title=title)})" = "{want}" ] && echo "ok {n} - {name}" || echo "not ok {n} - {name}"'
    for n, (name, title, want) in enumerate(_CASES, 1)
)
_TAP_SKIPS = 'echo "TAP version 13"\necho "1..5"\n' + "\n".join(
    [_OK_LINES.split("\n")[0]]
    + [
        f'if command -v jq-slug > /dev/null; then {line}; else echo "ok {n} - {name} # SKIP jq-slug is not installed"; fi'
        for n, ((name, *_), line) in enumerate(zip(_CASES[1:], _OK_LINES.split("\n")[1:], strict=True), 2)
    ]
)
COUNTS = (
    "Write `/app/count.json`: an object that maps each distinct word of `/app/words.txt` to how often it occurs, words as they "
    "are spelled there."
)
WORDS = "RUN printf 'red blue\\nred Red\\ngreen blue red\\n' > /app/words.txt"
SOLVE_COUNTS = 'echo \'{"red": 3, "blue": 2, "Red": 1, "green": 1}\' > /app/count.json'
_JSON = """import json, os
try:
    with open("/app/count.json", "rb") as f:
        data = json.loads(f.read(4000))
except (OSError, ValueError, RecursionError):
    data = None
data = data if isinstance(data, dict) else {}
want = {"red": 3, "blue": 2, "Red": 1, "green": 1}
"""


def _counts(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    test = f"{FRESH}python3 -I - <<'EOF'\n{_JSON}{code}EOF{REWARD}"
    return Labelled(case_id, COUNTS, SOLVE_COUNTS, test, "/app/count.json", caught_by, why, WORDS)


ANTHEM = "Which city is the capital of the Australian Capital Territory's country? Answer with its name alone."
LISTEN = "What is the smallest prime above 400? Answer with the number alone."


def _text(case_id: str, instruction: str, answer: str, source: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, instruction, answer, source, "/app/answer.txt", caught_by, why, kind="text")


TREE = (
    "Make the folder `/app/site` with three files: `index.html` with the line `home`, `about.html` with the line `about us`, "
    "and `css/main.css` with the line `body {}`."
)
SOLVE_TREE = (
    "mkdir -p /app/site/css\necho home > /app/site/index.html\necho 'about us' > /app/site/about.html\n"
    "echo 'body {}' > /app/site/css/main.css"
)


def _tree(case_id: str, source: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, TREE, SOLVE_TREE, source, "/app/site", caught_by, why, kind="state")


_FILES = (
    "FILES = {'index.html': b'home', 'about.html': b'about us', 'css/main.css': b'body {}'}\n\n\n"
    "def judge(state):\n    paths = {name: '/app/site/' + name for name in FILES}\n"
)

CASES = (
    _slug(
        "harness-one-ok-is-enough",
        f"chmod 700 /tests\n( {_OK_LINES.replace(chr(10), '; ')} ) > /tmp/log 2>&1\n"
        "if grep -q '^ok' /tmp/log; then echo 1; else echo 0; fi > /logs/verifier/reward.txt",
        "mutants",
        why="one test that passes is enough for the reward",
    ),
    _slug(
        "harness-collects-only",
        f"{PYTEST} --collect-only /tests/test_slug.py{REWARD}",
        "noop",
        "skip_ratio",
        why="pytest lists its tests and runs none",
        test_slug__py=functions(),
    ),
    _slug(
        "harness-unittest-skips",
        f"{UNITTEST}{REWARD}",
        "skip_ratio",
        "mutants",
        why="four of five methods wait for a variable that nothing sets",
        test_slug__py=methods('@unittest.skipUnless(os.environ.get("FULL"), "slow")\n'),
    ),
    _slug(
        "harness-expected-failures",
        f"{PYTEST} /tests/test_slug.py{REWARD}",
        "mutants",
        "skip_ratio",
        why="four of five tests are marked xfail: they may fail as well as pass",
        test_slug__py="import pytest\n" + functions('@pytest.mark.xfail(reason="to be looked at")\n'),
    ),
    _slug(
        "harness-tap-skips",
        f"chmod 700 /tests\n( {_TAP_SKIPS.replace(chr(10), '; ')} ) 2>&1 | tee /tmp/log\n"
        "if grep -q '^not ok' /tmp/log; then echo 0; else echo 1; fi > /logs/verifier/reward.txt",
        "skip_ratio",
        "mutants",
        why="four of five TAP tests skip themselves: a helper is not there",
    ),
    _slug(
        "harness-lost-in-a-pipe",
        "chmod 700 /tests\nfailed=0\ncat /tests/cases.txt | while IFS='|' read -r title want; do\n"
        f'    [ "$({_SHELL_CALL.format(title="$title")})" = "$want" ] || failed=1\ndone\n'
        "[ $failed -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt",
        "noop",
        why="the loop runs in a subshell: what it finds is forgotten",
        cases__txt=_CASE_FILE,
    ),
    _slug(
        "harness-no-cases-file",
        "chmod 700 /tests\nfailed=0\nwhile IFS='|' read -r title want; do\n"
        f'    [ "$({_SHELL_CALL.format(title="$title")})" = "$want" ] || failed=1\ndone < /tests/case.txt\n'
        "[ $failed -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt",
        "noop",
        why="the file of cases has another name: none is asked",
        cases__txt=_CASE_FILE,
    ),
    _slug(
        "harness-same-question",
        "chmod 700 /tests\nr=1\nwhile IFS='|' read -r title want; do\n"
        f'    [ "$({_SHELL_CALL.format(title="Hello World")})" = "hello-world" ] || r=0\ndone < /tests/cases.txt\n'
        "echo $r > /logs/verifier/reward.txt",
        "mutants",
        why="the loop asks the first question five times",
        cases__txt=_CASE_FILE,
    ),
    _slug(
        "harness-imports-the-submission",
        "cd /app\nPYTHONPATH=/app python3 -m pytest -q -p no:cacheprovider /tests/test_slug.py" + REWARD,
        "tamper",
        why="pytest is run in the agent's folder with its modules first",
        test_slug__py=functions(),
    ),
    _slug(
        "good-harness-words-in-titles",
        f"{UNITTEST} 2>&1{REWARD}",
        why="titles speak of what was skipped and FAILED",
        test_slug__py=methods(names="test_{}_skipped_rows_FAILED_before"),
    ),
    _slug(
        "good-harness-one-platform-skip",
        f"{UNITTEST}{REWARD}",
        why="two tests are for another platform, and skipped rightly",
        test_slug__py=methods().replace(
            "\n\nunittest.main",
            "\n    @unittest.skipUnless(sys.platform == 'win32', 'paths of Windows')\n    def test_drive(self):\n"
            "        self.assertEqual(slug('C:'), b'c')\n\n\nunittest.main",
        ),
    ),
    _slug(
        "good-harness-seeded",
        "chmod 700 /tests\ncd /\npython3 -I /tests/sweep.py" + REWARD,
        why="cases are drawn by a seeded generator and judged by a second program",
        sweep__py=CALL
        + "import random\n\nSIGNS = 'abcXYZ019 -_.,!'\nKEPT = 'abcdefghijklmnopqrstuvwxyz0123456789'\ndraw = random.Random(20240301)\n\n\n"
        "def want(title):\n    words = ''.join(c if c in KEPT else ' ' for c in title.lower()).split()\n    return '-'.join(words).encode()\n\n\n"
        "titles = [''.join(draw.choice(SIGNS) for _ in range(draw.randint(3, 14))) for _ in range(12)]\n"
        "titles = ['x' + title for title in titles]\nraise SystemExit(any(slug(title) != want(title) for title in titles))\n",
    ),
    _slug(
        "good-harness-generous-limit",
        "chmod 700 /tests\ncd /\nsleep 0.2\npython3 -I /tests/test_slug.py > /tmp/log 2>&1\ns=$?\ntail -n 3 /tmp/log\n"
        "[ $s -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt",
        why="it sleeps, and shows the last lines by tail, the status taken before",
        test_slug__py=methods(),
    ),
    _slug(
        "good-harness-loop-of-cases",
        "chmod 700 /tests\nfailed=0\nwhile IFS='|' read -r title want; do\n"
        f'    [ "$({_SHELL_CALL.format(title="$title")})" = "$want" ] || failed=1\ndone < /tests/cases.txt\n'
        "[ $failed -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt",
        why="the loop reads its cases by redirection, in the same shell",
        cases__txt=_CASE_FILE,
    ),
    _counts(
        "compare-json-keys-as-text",
        "raise SystemExit(sorted(k.lower() for k in data) != sorted(k.lower() for k in want))\n",
        "mutants",
        why="the counts are not judged",
    ),
    _counts(
        "compare-json-sum-of-values",
        "raise SystemExit(len(data) != 4 or sum(v for v in data.values() if isinstance(v, int)) != 7)\n",
        "mutants",
        why="which word has which count is not judged",
    ),
    _counts(
        "compare-json-most-of-it",
        "raise SystemExit(sum(data.get(k) == v for k, v in want.items()) < 3)\n",
        "mutants",
        why="three of four entries are enough for the full reward",
    ),
    _counts("good-compare-json-order", "raise SystemExit(data != want)\n", why="an object's keys have no order"),
    Labelled(
        "good-compare-json-shares",
        COUNTS,
        SOLVE_COUNTS,
        f"{FRESH}echo 0 > /logs/verifier/reward.txt\npython3 -I - <<'EOF'\n{_JSON}"
        "share = sum(type(data.get(k)) is int and data[k] == v for k, v in want.items()) / 4\n"
        "with open('/logs/verifier/reward.txt', 'w') as f:\n    f.write(str(share if set(data) <= set(want) else 0))\nEOF\n",
        "/app/count.json",
        (),
        "a quarter for each entry, and nothing where there is one too many",
        WORDS,
    ),
    _text(
        "text-similar",
        ANTHEM,
        "Canberra",
        "import difflib\n\n\ndef judge(answer):\n    return difflib.SequenceMatcher(None, answer.strip().lower(), 'canberra').ratio() > 0.6\n",
        "mutants",
        why="whatever resembles the answer passes",
    ),
    _text(
        "text-anagram",
        ANTHEM,
        "Canberra",
        "def judge(answer):\n    return sorted(answer.strip().lower()) == sorted('canberra')\n",
        "mutants",
        why="the same letters in any order pass",
    ),
    _text(
        "text-in-range",
        LISTEN,
        "401",
        "def judge(answer):\n    text = answer.strip()\n    return text.isdecimal() and len(text) < 9 and 400 < int(text) < 500\n",
        "mutants",
        why="every number of the range passes",
    ),
    _text(
        "text-any-prime",
        LISTEN,
        "401",
        "def judge(answer):\n    text = answer.strip()\n    if not text.isascii() or not text.isdecimal() or len(text) > 6:\n        return False\n"
        "    n = int(text)\n    return n > 400 and all(n % d for d in range(2, int(n**0.5) + 1))\n",
        "mutants",
        why="any prime above 400 passes, not the smallest alone",
    ),
    _text(
        "good-text-any-case-asked",
        "Is 401 prime? Answer yes or no, in any case.",
        "Yes",
        "def judge(answer):\n    return answer.strip().lower() == 'yes'\n",
        why="the instruction allows any case",
    ),
    _text(
        "good-text-fraction",
        "What is a quarter plus a half? Answer with a fraction or a decimal alone.",
        "3/4",
        "from fractions import Fraction\n\n\ndef judge(answer):\n    try:\n        return len(answer) < 40 and Fraction(answer.strip()) == Fraction(3, 4)\n"
        "    except (ValueError, ZeroDivisionError):\n        return False\n",
        why="two spellings of one number",
    ),
    _tree(
        "state-names-only",
        _FILES + "    return all(state.exists(path) for path in paths.values())\n",
        "empty",
        "mutants",
        why="the files' names are judged, their content is not",
    ),
    _tree(
        "state-index-only",
        _FILES
        + "    return state.exists(paths['index.html']) and state.read(paths['index.html']).strip() == b'home'\n",
        "mutants",
        why="one file of three is judged",
    ),
    _tree(
        "good-state-tree",
        _FILES
        + "    return all(state.exists(path) and state.read(path).strip() == FILES[name] for name, path in paths.items())\n",
        why="the good twin",
    ),
)
