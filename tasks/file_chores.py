"""file-chores: several turns in a shell, over a folder of files.

Chores are done in order, and the next may need what the last one left: create, append, copy, move, delete, replace a
word, count lines, sort. Levels: how many ``chores``, from one to a long horizon of twenty, and ``traps``: names with
blanks and leading dashes, hidden files, last lines without an end. The verifier compares the whole tree, byte for
byte but for newlines at a file's end: what was not asked for must be as it was.
"""

from __future__ import annotations

import random
import shlex
from typing import Any

from envsdk import AgentSpec, Budget, ContainerSpec, Draw, Example, family, verifier
from envsdk.sandboxes.base import Limits

PLAIN = ("inbox/letter.txt", "inbox/order.txt", "inbox/offer.txt", "shelf/books.txt", "shelf/tapes.txt", "plan.txt")
TRICKY = ("inbox/old letter.txt", "shelf/-list.txt", ".hidden.txt", "inbox/no end.txt", "shelf/it's.txt")


@verifier(kind="state")
def same_tree(state: Any, *, expected: dict[str, str]) -> float:
    """1 where ``/app`` holds exactly the expected files; newlines at the end of one are free."""
    found: dict[str, bytes] = {}
    pending = ["/app"]
    while pending:
        folder = pending.pop()
        if folder.count("/") > 8 or len(found) > 200:
            return 0.0
        try:
            names = state.list(folder)
        except (FileNotFoundError, NotADirectoryError):
            return 0.0  # all is gone, or a link leads nowhere
        for name in names:
            path = f"{folder}/{name}"
            try:
                found[path.removeprefix("/app/")] = state.read(path).rstrip(b"\n")
            except (FileNotFoundError, IsADirectoryError):
                pending.append(path)
    return float(found == {path: text.encode().rstrip(b"\n") for path, text in expected.items()})


@family(
    verifier=same_tree,
    levels={"chores": (1, 3, 8, 20), "traps": (False, True)},
    agent=AgentSpec(
        protocol="shell",
        system="You do chores in a shell. Reply with one command at a time, and with done when all is done.",
        examples=(
            Example(
                user="Create the file hello.txt with the line: good morning",
                assistant="echo 'good morning' > hello.txt",
            ),
            Example(user="[exit code 0]", assistant="done"),
            Example(user="Copy the file hello.txt to shelf/hello.txt", assistant="cp hello.txt shelf/hello.txt"),
            Example(user="[exit code 0]", assistant="done"),
            Example(user="Delete the file inbox/bill.txt", assistant="rm inbox/bill.txt"),
            Example(user="[exit code 0]", assistant="done"),
        ),
        stop=("\n",),
    ),
    container=ContainerSpec(limits=Limits(cpus=1, memory_mib=256, pids=64)),
    artifacts=("/app",),
    tags=("shell", "multi-turn", "files"),
    predicted_pass=lambda *, chores, traps: 0.04**chores * (0.5 if traps else 1.0),
)
def file_chores(rng: random.Random, *, chores: int, traps: bool) -> Draw:
    """Do chores over a folder of files in a shell."""
    start = _files(traps=traps)
    tree = dict(start)
    lines, commands, previous = [], [], tree
    for number in range(chores):
        previous = dict(tree)
        line, command = _chore(rng, tree, number)
        lines.append(line)
        commands.append(command)
    task = lines[0] if chores == 1 else "\n".join(f"{n}. {line}" for n, line in enumerate(lines, start=1))
    wrong = {"last-one-left-out": "\n".join(commands[:-1]) or "true", "all-gone": "rm -rf /app/* /app/.hidden.txt"}
    if previous == tree:
        raise AssertionError("a chore must change something")
    return Draw(
        instruction=task,
        params={"expected": tree},
        oracle="\n".join(commands),
        wrong={**wrong, "one-file-more": "\n".join([*commands, "echo more > /app/more.txt"])},
        files=start,
        budget=Budget(turns=2 * chores + 1, reply_tokens=64, step_s=10, episode_s=60 + 20 * chores, verify_s=30),
    )


def _chore(rng: random.Random, tree: dict[str, str], number: int) -> tuple[str, str]:  # noqa: PLR0911 - one a kind
    """One chore: what is asked, and the command; ``tree`` is changed as the command changes the files."""
    from tasks.words import WORDS

    name = f"{rng.choice(WORDS)}-{number + 1}.txt"
    text = " ".join(rng.sample(WORDS, 2))
    path = rng.choice(sorted(tree))
    file = shlex.quote(f"./{path}" if path.startswith("-") else path)
    kind = rng.choice(("create", "create", "append", "copy", "move", "delete", "replace", "count", "sort"))
    if kind in {"delete", "move"} and len(tree) <= 3:
        kind = "create"
    if kind == "append":
        tree[path] += f"{text}\n"
        return f"Append the line to the file {path}: {text}", f"echo '{text}' >> {file}"
    if kind == "copy":
        tree[f"shelf/{name}"] = tree[path]
        return f"Copy the file {path} to shelf/{name}", f"cp {file} shelf/{name}"
    if kind == "move":
        tree[f"inbox/{name}"] = tree.pop(path)
        return f"Move the file {path} to inbox/{name}", f"mv {file} inbox/{name}"
    if kind == "delete":
        del tree[path]
        return f"Delete the file {path}", f"rm {file}"
    if kind == "replace" and tree[path].split():
        old = rng.choice(sorted(set(tree[path].split())))
        new = f"{rng.choice(WORDS)}{number}"
        words = [[new if word == old else word for word in line.split(" ")] for line in tree[path].split("\n")]
        tree[path] = "\n".join(" ".join(line) for line in words)
        return (
            f"In the file {path} replace the word {old} by {new}, everywhere",
            f"sed -i 's/\\b{old}\\b/{new}/g' {file}",
        )
    if kind == "count":
        tree[name] = f"{tree[path].count(chr(10))}\n"
        return f"Write the number of lines of the file {path} into the file {name}", f"wc -l < {file} > {name}"
    if kind == "sort":
        lines = tree[path].split("\n")
        ordered = sorted(line for line in lines if line) if tree[path].endswith("\n") else sorted(lines)
        done = "".join(f"{line}\n" for line in ordered)
        if done != tree[path]:
            tree[path] = done
            return f"Sort the lines of the file {path} in place, by byte value", f"LC_ALL=C sort -o {file} {file}"
    tree[name] = f"{text}\n"
    return f"Create the file {name} with the line: {text}", f"echo '{text}' > {name}"


def _files(*, traps: bool) -> dict[str, str]:
    """The start: the same for every seed and number of chores, so that all draws share two images."""
    from tasks.words import WORDS

    rng = random.Random("file-chores files")  # noqa: S311 - not for secrets
    files = {}
    for path in (*PLAIN, *TRICKY) if traps else PLAIN:
        lines = [" ".join(rng.sample(WORDS, rng.randint(1, 3))) for _ in range(rng.randint(2, 6))]
        files[path] = "\n".join(lines) + ("" if "no end" in path else "\n")
    return files
