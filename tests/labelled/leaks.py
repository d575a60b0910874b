"""Answers, oracles and verifiers that can be read where the agent works; and files that only look like it."""

from __future__ import annotations

from dataclasses import replace

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

DIGITS = "Write the sum of the decimal digits of 2 to the power {power} to `/app/answer.txt`."
_SOLVE = "python3 -I -c 'print(sum(map(int, str(2 ** {power}))))' > /app/answer.txt"
_TEST = FRESH + "[ \"$(head -c 64 /app/answer.txt 2>/dev/null | tr -d '[:space:]\\000')\" = {want} ]" + REWARD
_GIT = "git -c user.name=a -c user.email=a@b.c"
FIX = "`/app/repo/area.py` computes the area of a rectangle wrongly. Repair it."
_AREA = """chmod 700 /tests
python3 -I - <<'EOF'
import subprocess
call = "import sys; sys.path.insert(0, '/app/repo'); import area; print(area.area(*map(int, sys.argv[1:])))"
for words, want in ((("2", "3"), b"6"), (("5", "5"), b"25"), (("0", "9"), b"0"), (("7", "1"), b"7")):
    command = ["timeout", "-s", "KILL", "9", "runuser", "-u", "agent", "--", "python3", "-I", "-B", "-c", call, *words]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/")
    if run.stdout.strip() != want:
        raise SystemExit(1)
EOF"""


def _digits(
    case_id: str,
    *caught_by: str,
    why: str,
    lines: str = "",
    power: int = 1000,
    want: str = "1366",
    hint: str = "",
    **files: str,
) -> Labelled:
    named = {f"environment/{name.replace('__', '.')}": text for name, text in files.items()}
    return Labelled(
        case_id,
        DIGITS.format(power=power) + hint,
        _SOLVE.format(power=power),
        _TEST.format(want=want),
        "/app/answer.txt",
        caught_by,
        why,
        lines,
        named,
    )


def _repo(case_id: str, commands: str, *caught_by: str, why: str) -> Labelled:
    write = "printf 'def area(width, height):\\n    return width %s height\\n'"
    commands = commands.replace("FIX", f"{write} '*' > area.py")
    prepare = f"mkdir repo && cd repo && git init -q -b main && {write} + > area.py && git add . && {_GIT} commit -qm base && {commands}"
    return Labelled(
        case_id,
        FIX,
        "sed -i 's/width + height/width * height/' /app/repo/area.py",
        FRESH + _AREA + REWARD,
        "/app/repo/area.py",
        caught_by,
        why,
        "COPY repo/ /app/repo/",
        prepare=prepare,
    )


CASES = (
    _digits(
        "leak-in-environment",
        "leak",
        why="the answer is a variable of the image",
        lines="ENV EXPECTED_ANSWER=1366",
    ),
    _digits(
        "leak-in-prompt",
        "leak",
        why="the oracle's program stands in the instruction",
        hint=" For instance: python3 -I -c 'print(sum(map(int, str(2 ** 1000))))' > /app/answer.txt",
    ),
    _digits(
        "leak-hint-in-prompt",
        "leak",
        why="the instruction gives the answer away",
        hint=" To check yourself: the answer is 1366.",
    ),
    _digits(
        "leak-key-file",
        "leak",
        why="a key file in a folder of the system",
        lines="RUN mkdir -p /opt/data && echo 'answer=1366' > /opt/data/quiz-answers.cfg",
    ),
    _digits(
        "leak-encoded",
        "leak",
        why="the answer lies in the image, in base64",
        lines="RUN mkdir -p /opt/data && echo MTM2Ngo= > /opt/data/answer.b64",
    ),
    replace(
        _digits(
            "leak-encrypted-oracle",
            "leak",
            why="the oracle's solution lies in the image, under a key that everybody knows",
            lines="RUN mkdir -p /app/.oracle && printf '\\000\\214\\226\\377' > /app/.oracle/solution.enc",
        ),
        solve="test -s /app/.oracle/solution.enc\n" + _SOLVE.format(power=1000),
    ),
    _digits(
        "leak-oracle-copied",
        "leak",
        why="the oracle's script was copied into the image",
        lines="COPY helper.sh /opt/helper.sh",
        helper__sh="#!/bin/sh\nset -eu\n" + _SOLVE.format(power=1000) + "\n",
    ),
    _digits(
        "leak-verifier-copied",
        "leak",
        why="the verifier was copied into the image",
        lines="COPY check/ /app/.check/",
        check__sh="",
        **{"check/test.sh": "#!/bin/sh\nmkdir -p /logs/verifier\n" + _TEST.format(want="1366")},
    ),
    _digits(
        "leak-history",
        "leak",
        why="a shell history with the oracle's command",
        lines='RUN echo "'
        + _SOLVE.format(power=1000).replace('"', '\\"')
        + '" > /home/agent/.bash_history && chown agent /home/agent/.bash_history',
    ),
    _digits(
        "good-leak-example",
        why="looks like an answer file: it is that of another question",
        lines="RUN mkdir -p /app/examples && echo 'sum of the digits of 2 to the power 15: 26' > /app/examples/answer.txt",
    ),
    _digits(
        "good-leak-number-elsewhere",
        why="looks like the answer: a port number that happens to be equal",
        lines="RUN echo 'listen 1366' > /etc/mini-server.conf",
    ),
    _repo(
        "leak-git-branch",
        f"git checkout -qb fix && FIX && {_GIT} commit -qam 'repair area' && git checkout -q main",
        "leak",
        why="a branch holds the repair",
    ),
    _repo(
        "leak-git-dangling",
        f"FIX && {_GIT} commit -qam 'repair area' && git reset -q --hard HEAD~1 && git reflog expire --expire=now --all",
        "leak",
        why="the repair's commit was reset, and dangles",
    ),
    _repo(
        "leak-git-stash",
        f"FIX && {_GIT} stash -q",
        "leak",
        why="the repair lies in the stash",
    ),
    _repo(
        "good-leak-git-clean",
        "true",
        why="a repository with its base commit alone",
    ),
    _repo(
        "good-leak-git-tag",
        f"git tag v1.0 && echo 'x = 1' > other.py && git add . && {_GIT} commit -qm 'more' ",
        why="looks like more commits: a tag on an older one",
    ),
)
