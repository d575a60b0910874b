"""shell-line: one shell command whose output is the answer.

The box is the same for every draw: a folder of small text files. Level ``skill`` goes from printing a given word to
joining tables: ``print``, ``look`` (list a folder, first lines), ``count`` (lines, matches), ``table`` (sums and
largest rows of a column), ``join`` (two tables by a key, with rows that have no partner). The verifier compares the
printed lines with the right ones, white space at line ends and empty lines at the end aside.
"""

from __future__ import annotations

import random

from envsdk import AgentSpec, Budget, ContainerSpec, Draw, Example, family, verifier
from envsdk.sandboxes.base import Limits

SKILLS = ("print", "look", "count", "table", "join")
_EXAMPLES = {
    "look": Example(user="List the files in the folder music.", assistant="ls music"),
    "first": Example(user="Print the first line of the file plan.txt.", assistant="head -n 1 plan.txt"),
    "count": Example(user="Print the number of lines of the file plan.txt.", assistant="wc -l < plan.txt"),
    "print": Example(user="Print the word hello.", assistant="echo hello"),
}


def _agent(skill: str) -> AgentSpec:
    """Four examples, the skill's own last: a small model leans on the last one (0.37 against 0.02 for print)."""
    examples = sorted(_EXAMPLES, key=lambda name: (name == skill, list(_EXAMPLES).index(name)))
    return AgentSpec(
        protocol="command",
        system="You write one shell command and nothing else.",
        examples=tuple(_EXAMPLES[name] for name in examples),
        stop=("\n",),
    )


@verifier
def prints(answer: str, *, expected: str) -> float:
    """1 where the answer has the expected lines."""
    lines = [line.rstrip() for line in answer.rstrip().split("\n")]
    return float(lines == expected.split("\n"))


@family(
    verifier=prints,
    levels={"skill": SKILLS},
    agent=_agent("print"),
    container=ContainerSpec(limits=Limits(cpus=1, memory_mib=256, pids=64)),
    budget=Budget(turns=1, reply_tokens=64, step_s=10, episode_s=120, verify_s=30, total_s=300),
    tags=("shell", "one-command"),
    predicted_pass=lambda *, skill: (0.3, 0.05, 0.04, 0.002, 0.001)[SKILLS.index(skill)],
)
def shell_line(rng: random.Random, *, skill: str) -> Draw:
    """Solve a small question about files with one shell command."""
    files = _files()
    make = {"print": _print, "look": _look, "count": _count, "table": _table, "join": _join}[skill]
    instruction, command, expected, wrong = make(rng, files)
    return Draw(
        instruction=instruction,
        params={"expected": expected},
        oracle=command,
        wrong={"nothing": "true", "constant": "echo 0", **wrong},
        right={"with-newline-after": f"{command}; echo"},
        files=files,
        agent=_agent(skill),
    )


Parts = tuple[str, str, str, dict[str, str]]


def _print(rng: random.Random, _files: dict[str, str]) -> Parts:
    from tasks.words import WORDS

    word, other = rng.sample(WORDS, 2)
    return f"Print the word {word}.", f"echo {word}", word, {"another-word": f"echo {other}"}


def _look(rng: random.Random, files: dict[str, str]) -> Parts:
    if rng.random() < 0.2:
        folder = rng.choice(sorted({path.split("/")[0] for path in files}))
        names = sorted(path.split("/")[1] for path in files if path.startswith(f"{folder}/"))
        wrong = {"long-form": f"ls -la {folder}", "with-folder": f"ls -d {folder}/*"}
        return f"List the files in the folder {folder}.", f"ls {folder}", "\n".join(names), wrong
    path = rng.choice([path for path in sorted(files) if path.endswith(".txt")])
    lines = files[path].splitlines()
    number, end = rng.randint(1, 8), rng.choice(("first", "last"))
    what = f"the {end} line" if number == 1 else f"the {end} {number} lines"
    tool = "head" if end == "first" else "tail"
    expected = lines[:number] if end == "first" else lines[-number:]
    wrong = {"all": f"cat {path}", "one-more": f"{tool} -n {number + 1} {path}"}
    return f"Print {what} of the file {path}.", f"{tool} -n {number} {path}", "\n".join(expected), wrong


def _count(rng: random.Random, files: dict[str, str]) -> Parts:
    path = rng.choice([path for path in sorted(files) if path.endswith(".txt")])
    lines = files[path].splitlines()
    if rng.random() < 0.3:
        wrong = {"with-name": f"wc -l {path}", "one-more": f"echo {len(lines) + 1}"}
        return f"Print the number of lines of the file {path}.", f"wc -l < {path}", str(len(lines)), wrong
    word = rng.choice(sorted(set(" ".join(lines).split())))
    found = sum(word in line.split() for line in lines)
    question = f"Print how many lines of the file {path} have the word {word}."
    wrong = {"lines": f"grep -w {word} {path}", "none": "echo 0", "all": f"wc -l < {path}; true"}
    if found == len(lines):
        del wrong["all"]
    if found == 1 and lines == [word]:
        del wrong["lines"]
    return question, f"grep -cw {word} {path}", str(found), wrong


def _table(rng: random.Random, files: dict[str, str]) -> Parts:
    path = rng.choice([path for path in sorted(files) if path.startswith("tables/sales")])
    rows = [line.split(",") for line in files[path].splitlines()[1:]]
    shop = rng.choice(sorted({row[0] for row in rows}))
    if rng.random() < 0.5:
        total = sum(int(row[2]) for row in rows if row[0] == shop)
        command = f"awk -F, '$1 == \"{shop}\" {{ n += $3 }} END {{ print n }}' {path}"
        wrong = {"all-shops": f"awk -F, 'NR > 1 {{ n += $3 }} END {{ print n }}' {path}"}
        return f"Print the sum of the column amount for the shop {shop} in {path}.", command, str(total), wrong
    best = max((row for row in rows if row[0] == shop), key=lambda row: (int(row[2]), row[1]))
    command = f"grep ^{shop}, {path} | sort -t, -k3,3nr -k2,2r | head -n 1 | cut -d, -f2"
    which = f"the row with the largest amount for the shop {shop} in {path}"
    question = f"Print the item of {which}; of equal ones the last by name."
    return question, command, best[1], {"whole-row": f"grep ^{shop}, {path} | sort -t, -k3,3n | tail -n 1"}


def _join(rng: random.Random, files: dict[str, str]) -> Parts:
    path = rng.choice([path for path in sorted(files) if path.startswith("tables/sales")])
    rows = [line.split(",") for line in files[path].splitlines()[1:]]
    prices = dict(line.split(",") for line in files["tables/prices.csv"].splitlines()[1:])
    limit = rng.randint(2, 9) * 10
    value: dict[str, int] = {}
    for shop, item, amount in rows:
        if item in prices and int(amount) <= limit:
            value[shop] = value.get(shop, 0) + int(amount) * int(prices[item])
    expected = "\n".join(f"{shop} {value[shop]}" for shop in sorted(value))
    command = (
        f"awk -F, 'FNR == 1 {{ next }} NR == FNR {{ p[$1] = $2; next }} ($2 in p) && $3 <= {limit} "
        f"{{ v[$1] += $3 * p[$2] }} END {{ for (s in v) print s, v[s] }}' tables/prices.csv {path} | LC_ALL=C sort"
    )
    question = (
        f"For each shop in {path} print its name and the sum of amount times price over its rows whose amount is at "
        f"most {limit}, sorted by name. Prices are in tables/prices.csv; rows of items without a price do not count."
    )
    return question, command, expected, {"without-the-bound": command.replace(f" && $3 <= {limit}", "")}


def _files() -> dict[str, str]:
    """The box: the same for every seed and level, so that all draws share one image."""
    from tasks.words import WORDS

    rng = random.Random("shell-line files")  # noqa: S311 - not for secrets
    files = {}
    for folder, names in (("notes", ("todo", "ideas", "trip", "team")), ("lists", ("food", "tools", "birds", "songs"))):
        some = rng.sample(WORDS, 40)
        for name in names:
            lines = [" ".join(rng.choices(some, k=rng.randint(1, 4))) for _ in range(rng.randint(8, 30))]
            files[f"{folder}/{name}.txt"] = "\n".join(lines) + "\n"
    shops, items = rng.sample(WORDS, 6), rng.sample(WORDS, 12)
    for year in (2021, 2022, 2023):
        pairs = rng.sample([(shop, item) for shop in shops for item in items], 40)
        lines = [f"{shop},{item},{rng.randint(1, 99)}" for shop, item in pairs]
        files[f"tables/sales-{year}.csv"] = "\n".join(["shop,item,amount", *lines]) + "\n"
    priced = [f"{item},{rng.randint(2, 40)}" for item in sorted(rng.sample(items, 9))]
    files["tables/prices.csv"] = "\n".join(["item,price", *priced]) + "\n"
    return files
