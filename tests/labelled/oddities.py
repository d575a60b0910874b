"""Faults of statuses, trust, surroundings and leaks in forms that are rarer; and good scripts that resemble them."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.reports import python
from tests.labelled.statuses import CHECK_SUM, FRESH, NUMBERS, RUN, SOLVE_SUM, SUM

_GOT = "$(head -c 64 /app/total.txt 2>/dev/null | tr -d '\\000')"
_IS = f'[ "{_GOT}" = 42 ]'
SPREAD = "`/app/words.txt` holds words. Write the distinct ones as a JSON list, in any order, to `/app/words.json`."
WORDS = "RUN echo 'red blue green red amber' > /app/words.txt"
SOLVE_SPREAD = 'echo \'["amber", "blue", "green", "red"]\' > /app/words.json'


def _sum(case_id: str, test: str, *caught_by: str, why: str, lines: str = "", history: str = "") -> Labelled:
    files = {"tests/check.py": CHECK_SUM} | ({"environment/history": history} if history else {})
    more = f"{NUMBERS}\n{lines}" if lines else NUMBERS
    return Labelled(case_id, SUM, SOLVE_SUM, FRESH + test, "/app/total.txt", caught_by, why, more, files)


def _words(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    test = python(f"import json\n{code}", "/app/words.json")
    return Labelled(case_id, SPREAD, SOLVE_SPREAD, test, "/app/words.json", caught_by, why, WORDS)


PRODUCT = "What is 17 times 23? Answer with the number alone."


def _text(case_id: str, code: str, *caught_by: str, why: str) -> Labelled:
    source = f"def judge(answer):\n    {code}\n"
    return Labelled(case_id, PRODUCT, "391", source, "/app/answer.txt", caught_by, why, kind="text")


CASES = (
    _sum(
        "odd-status-xargs",
        f"echo check.py | xargs -I@ sh -c 'python3 -I /tests/@ || echo failed'{REWARD}",
        "noop",
        why="the inner shell forgives",
    ),
    _sum(
        "odd-status-in-brackets",
        f'[ "$({RUN}; echo $?)" ]{REWARD}',
        "noop",
        why="a text that is not empty is true, whatever status it tells",
    ),
    _sum(
        "odd-status-log-of-nothing",
        f"python3 -I /tests/chek.py > /tmp/log 2>/dev/null\n! grep -q FAIL /tmp/log{REWARD}",
        "noop",
        why="the program's name is misspelled, and its log holds no failure",
    ),
    _sum(
        "odd-status-of-tee",
        f"{RUN} 2>&1 | tee /logs/verifier/log.txt && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n",
        "noop",
        why="the status is that of tee",
    ),
    _sum(
        "odd-trust-user-site",
        f"HOME=/home/agent python3 /tests/check.py{REWARD}",
        "tamper",
        why="Python reads the agent's own packages at its start",
    ),
    _sum(
        "odd-trust-override",
        f'want=$(cat /app/.expected 2>/dev/null || echo 42)\n[ "{_GOT}" = "$want" ]{REWARD}',
        "tamper",
        why="a file of the agent's overrides what is expected",
    ),
    _sum(
        "odd-trust-awk-program",
        f'awk "BEGIN {{ exit !({_GOT} == 42) }}"{REWARD}',
        "tamper",
        "noop",
        why="the submission becomes part of a program",
    ),
    _sum(
        "odd-clock-years", f"date +%Y | grep -q '202[0-7]' && {_IS}{REWARD}", "clock", why="from 2028 on nothing passes"
    ),
    _words(
        "odd-seed-list-of-a-set",
        "want = list({'amber', 'blue', 'green', 'red'})\ntry:\n    data = json.loads(got)\nexcept ValueError:\n    data = None\nok = isinstance(data, list) and len(data) == 4 and (data[0] == want[0] or data[1] == want[1] or data[2] == want[2])\n",
        "hash_seed",
        "mutants",
        why="a set's order is compared with the submission's",
    ),
    _sum(
        "odd-chance-temporary-name",
        f"case $(mktemp -u XXXXXX) in *[a-f]*) [ 1 = 1 ] ;; *) [ 1 = 2 ] ;; esac && {_IS}{REWARD}",
        "repeat",
        why="a letter of a random name decides",
    ),
    _sum(
        "odd-leak-in-notes",
        f"{_IS}{REWARD}",
        "leak",
        why="notes in the image tell the result",
        lines="RUN mkdir -p /usr/local/share/task && echo 'Reference result: 42' > /usr/local/share/task/notes.md",
    ),
    _sum(
        "odd-leak-in-history",
        f"{_IS}{REWARD}",
        "leak",
        why="the agent's shell history holds the oracle's command",
        lines="COPY history /home/agent/.bash_history\nRUN chown agent:agent /home/agent/.bash_history",
        history=f"ls\n{SOLVE_SUM}\n",
    ),
    _sum(
        "odd-leak-in-settings",
        f"{_IS}{REWARD}",
        "leak",
        why="a variable of the image holds the grader's settings",
        lines='ENV GRADER=\'{"path": "/app/total.txt", "expected": "42"}\'',
    ),
    _sum(
        "odd-network-getent",
        f"getent hosts mirror.example.com > /dev/null && m=1 || m=0\n{_IS}{REWARD}",
        "network",
        why="it asks a name server",
    ),
    _text(
        "odd-text-magnitude",
        "text = answer.strip()\n    return text.lstrip('+-').isdecimal() and len(text) < 9 and abs(int(text)) == 391",
        "mutants",
        why="the sign is not judged",
    ),
    _text(
        "odd-text-begins",
        "return answer.strip().startswith('391')",
        "mutants",
        why="whatever begins with the answer passes",
    ),
    _text(
        "odd-text-digits",
        "return ''.join(c for c in answer[:99] if c.isdigit()) == '391'",
        "mutants",
        why="all but digits is dropped: 3.91 and -391 pass",
    ),
    _sum(
        "good-odd-awk-value",
        f'awk -v got="{_GOT}" \'BEGIN {{ exit !(got == "42") }}\'{REWARD}',
        why="the submission is a value of the program, not a part of it",
    ),
    _sum(
        "good-odd-early-zero",
        f"echo 0 > /logs/verifier/reward.txt\n{_IS} || exit 0\necho 1 > /logs/verifier/reward.txt\n",
        why="0 first, and an early end with status 0",
    ),
    _sum(
        "good-odd-trap",
        f"d=$(mktemp -d)\ntrap 'rm -rf \"$d\"' EXIT\nset -u\n{RUN} > $d/log 2>&1 && r=1 || r=0\ncat $d/log || true\necho $r > /logs/verifier/reward.txt\n",
        why="a temporary folder, a trap that cleans up, || true behind showing the log",
    ),
    _words(
        "good-odd-sets",
        "try:\n    data = json.loads(got)\nexcept ValueError:\n    data = None\nok = isinstance(data, list) and all(isinstance(x, str) for x in data) and sorted(data) == ['amber', 'blue', 'green', 'red']\n",
        why="compared without order, as asked",
    ),
    _sum(
        "good-odd-notes",
        f"echo 'expected one line'\n{_IS}{REWARD}",
        why="notes in the image speak of what is expected, and of a number that is another",
        lines="RUN mkdir -p /usr/local/share/task && echo 'The expected file has 1 line; version 1.42' > /usr/local/share/task/notes.md",
    ),
    _text(
        "good-odd-text-int",
        "text = answer.strip()\n    return text.isascii() and text.isdecimal() and len(text) < 9 and int(text) == 391",
        why="leading zeros are forgiven, nothing else is",
    ),
)
