"""Text answers and end states judged by Python functions."""

from __future__ import annotations

from tests.labelled.mini import Labelled

CAPITAL = "What is the capital of France? Answer with the name alone."
PRODUCT = "What is 17 times 23? Answer with the number alone."
CHOICE = "Which of these is a prime number? A) 21 B) 23 C) 25 D) 27. Answer with the letter alone."
SORTED = "Sort these words alphabetically: pear apple fig. Answer with the words in one line, separated by spaces."


def _text(case_id: str, instruction: str, answer: str, body: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(case_id, instruction, answer, f"{body}\n", "", caught_by, why, kind="text")


def _state(case_id: str, body: str, *caught_by: str, why: str) -> Labelled:
    return Labelled(
        case_id,
        "Write the numbers 1 to 5, one a line, to `/app/count.txt`.",
        "seq 5 > /app/count.txt",
        body,
        "/app/count.txt",
        caught_by,
        why,
        kind="state",
    )


_PLAIN = "def judge(answer):\n    return answer.strip() == {want!r}\n"

CASES = (
    _text(
        "text-substring",
        CAPITAL,
        "Paris",
        "def judge(answer):\n    return 'Paris' in answer",
        "mutants",
        why="Paris anywhere",
    ),
    _text(
        "text-reversed-in",
        CAPITAL,
        "Paris",
        "def judge(answer):\n    return answer.strip() in 'Paris'",
        "noop",
        why="the empty text is part of every text",
    ),
    _text(
        "text-letter-anywhere",
        CHOICE,
        "B",
        "def judge(answer):\n    return 'B' in answer.upper()",
        "echo",
        "mutants",
        why="every answer with a B in it",
    ),
    _text(
        "text-number-anywhere",
        PRODUCT,
        "391",
        "import re\n\n\ndef judge(answer):\n    return '391' in re.findall(r'[0-9]+', answer)",
        "mutants",
        why="one of many numbers is enough",
    ),
    _text(
        "text-first-letter",
        CAPITAL,
        "Paris",
        "def judge(answer):\n    return answer.strip()[:1] == 'P'",
        "mutants",
        why="one letter decides",
    ),
    _text(
        "text-length",
        CAPITAL,
        "Paris",
        "def judge(answer):\n    return len(answer.strip()) == 5",
        "mutants",
        why="counts letters",
    ),
    _text(
        "text-tolerance",
        PRODUCT,
        "391",
        "def judge(answer):\n    try:\n        return abs(float(answer) - 391) < 20\n    except ValueError:\n        return False",
        "mutants",
        why="a wide tolerance for an exact number",
    ),
    _text(
        "text-raises",
        PRODUCT,
        "391",
        "def judge(answer):\n    return int(answer) == 391",
        "noop",
        "empty",
        why="raises on what is no number",
    ),
    _text(
        "text-set-of-words",
        SORTED,
        "apple fig pear",
        "def judge(answer):\n    return set(answer.split()) == {'apple', 'fig', 'pear'}",
        "mutants",
        why="the order was the task",
    ),
    _text("text-always", CAPITAL, "Paris", "def judge(answer):\n    return 1.0", "noop", why="everything passes"),
    _text(
        "text-not-the-oracle",
        PRODUCT,
        "391",
        "def judge(answer):\n    return answer.strip() == '381'",
        "oracle",
        why="the expected number is wrong",
    ),
    _text(
        "text-random",
        PRODUCT,
        "391",
        "import random\n\n\ndef judge(answer):\n    return answer.strip() == '391' and random.random() < 0.6",
        "repeat",
        why="chance decides",
    ),
    _text(
        "text-today",
        PRODUCT,
        "391",
        "import time\n\n\ndef judge(answer):\n    return answer.strip() == '391' and time.time() < 1_830_000_000",
        "clock",
        why="a date decides",
    ),
    _text(
        "text-zone",
        PRODUCT,
        "391",
        "import time\n\n\ndef judge(answer):\n    return answer.strip() == '391' and time.localtime(0).tm_hour == 0",
        "clock",
        why="the zone decides",
    ),
    _text(
        "text-hash",
        PRODUCT,
        "391",
        "def judge(answer):\n    return answer.strip() == '391' and list({'a', 'b', 'c'})[0] != 'a'",
        "hash_seed",
        why="the hash seed decides",
    ),
    _text(
        "text-nan",
        PRODUCT,
        "391",
        "def judge(answer):\n    try:\n        return not abs(float(answer) - 391) > 1e-6\n    except ValueError:\n        return False",
        "mutants",
        why="nan passes",
    ),
    _text(
        "text-eval",
        PRODUCT,
        "391",
        "def judge(answer):\n    try:\n        return eval(answer) == 391\n    except Exception:\n        return False",
        "tamper",
        "mutants",
        why="the answer is evaluated: it may compare itself",
    ),
    _text("good-text-exact", CAPITAL, "Paris", _PLAIN.format(want="Paris"), why="the good twin"),
    _text(
        "good-text-case",
        CAPITAL,
        "Paris",
        "def judge(answer):\n    return answer.strip().casefold() == 'paris'",
        why="ignores case where nothing was said about it",
    ),
    _text(
        "good-text-number",
        PRODUCT,
        "391",
        "import re\n\n\ndef judge(answer):\n    text = answer.strip().rstrip('.')\n    return bool(re.fullmatch(r'[0-9]{1,9}', text)) and int(text) == 391",
        why="parses a number, refuses the rest",
    ),
    _text("good-text-letter", CHOICE, "B", _PLAIN.format(want="B"), why="the good twin"),
    _text(
        "good-text-words",
        SORTED,
        "apple fig pear",
        "def judge(answer):\n    return answer.split() == ['apple', 'fig', 'pear']",
        why="the good twin: words in order",
    ),
    _text(
        "good-text-partial",
        SORTED,
        "apple fig pear",
        "def judge(answer):\n    got, want = answer.split()[:9], ['apple', 'fig', 'pear']\n    share = sum(a == b for a, b in zip(got, want)) / 3\n    return share if got == want else share * 0.5",
        why="partial rewards below the full one",
    ),
    _state(
        "state-exists",
        "def judge(state):\n    return state.exists('/app/count.txt')\n",
        "empty",
        why="the file's being there is enough",
    ),
    _state(
        "state-first-line",
        "def judge(state):\n    lines = state.read('/app/count.txt').decode('utf-8', 'replace').splitlines() if state.exists('/app/count.txt') else []\n    return lines[:1] == ['1']\n",
        "mutants",
        why="the first line is enough",
    ),
    _state(
        "state-unordered",
        "def judge(state):\n    lines = state.read('/app/count.txt').decode('utf-8', 'replace').split() if state.exists('/app/count.txt') else []\n    return len(set(lines)) == 5\n",
        "mutants",
        why="any five lines pass",
    ),
    _state(
        "good-state",
        "def judge(state):\n    lines = state.read('/app/count.txt').decode('utf-8', 'replace').split() if state.exists('/app/count.txt') else []\n    return lines == ['1', '2', '3', '4', '5']\n",
        why="the good twin",
    ),
)
