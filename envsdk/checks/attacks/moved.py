"""What is right moved with an input: the oracle played on an input that the agent changed, as an agent could.

A finding needs all three: on the changed input the oracle leaves other outputs; they earn the full reward; and what it
leaves for the input as it came no longer does. A verifier that keeps a copy of its own, or knows the input's checksum,
refuses the first; of an oracle that only writes down its answer nothing can be told.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Iterator
from itertools import islice

from envsdk.checks.attacks.ground import Ground
from envsdk.checks.check import is_full
from envsdk.checks.mutation import bases
from envsdk.checks.mutation.sources import source_language
from envsdk.checks.outputs import read_files
from envsdk.checks.program_files import language_of
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.unpacking import text_of

MAX_INPUTS = 4
MAX_CHANGES = 2


async def moved_input(stage: Stage, ground: Ground) -> str:
    """The input with which what is right moves; empty where none does. Raises `SandboxError`."""
    if not ground.oracle.outputs:
        return ""
    for path, content in (await _inputs(stage, ground)).items():
        for scene in islice(_changed(path, content, is_one_of_many=path not in ground.writable), MAX_CHANGES):
            if await _moves(stage, ground, scene):
                return path
    return ""


async def _inputs(stage: Stage, ground: Ground) -> dict[str, bytes]:
    """Files that the verifier names, or the last of a folder that it names, writable, and untouched by the oracle."""
    named = [path for path, is_there in ground.writable.items() if is_there]
    folders = " ".join(map(shlex.quote, ground.named_folders))
    async with stage.box(Scene()) as box:
        if folders:
            last = f'for d in {folders}; do find "$d" -type f -writable | LC_ALL=C sort | tail -n 1; done'
            listed = await box.exec(last, user=ground.user, cwd="/")
            named += listed.stdout.decode("utf-8", "surrogateescape").splitlines()
        before = await read_files(box, dict.fromkeys(named))
    data = {
        path: content
        for path, content in before.items()
        if path not in ground.targets and language_of(path, content) is None and source_language(path) is None
    }
    chosen = dict(islice(data.items(), MAX_INPUTS))
    if not chosen:
        return {}
    async with stage.box(Scene(after_oracle=True)) as box:
        after = await read_files(box, chosen)
    return {path: content for path, content in chosen.items() if after.get(path) == content}


async def _moves(stage: Stage, ground: Ground, scene: Scene) -> bool:
    solved = Scene(files=scene.files, script=scene.script, solution=stage.task.root / "solution")
    async with stage.box(solved) as box:
        outputs = await read_files(box, ground.oracle.outputs)
    spec = stage.task.spec.verifier
    if outputs == ground.oracle.outputs or not is_full(await stage.play(solved), spec):
        return False
    as_it_came = Scene(files=scene.files, script=scene.script, after_oracle=True)
    return not is_full(await stage.play(as_it_came), spec)


def _changed(path: str, content: bytes, *, is_one_of_many: bool) -> Iterator[Scene]:
    """Scenes with a part of the input gone."""
    if is_one_of_many:
        yield Scene(script=f"rm -f -- {shlex.quote(path)}")
    for other in shortened(content):
        if other != content:
            yield Scene(files={path: other})


def shortened(content: bytes) -> Iterator[bytes]:
    """An input with less in it: fewer rows of a data base, members of a JSON value, lines of a text."""
    if content.startswith(bases.MAGIC):
        yield from _without_last_rows(content)
        return
    text = text_of(content)
    if text is None or not text.strip():
        return
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list) and value:
        yield json.dumps(value[:-1]).encode()
        return
    if isinstance(value, dict) and value:
        yield json.dumps(dict(list(value.items())[:-1])).encode()
        return
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        yield "".join(lines[:-1]).encode()
        yield "".join(lines[:2] if len(lines) > 2 else lines[1:]).encode()
    elif len(words := text.split()) > 1:
        yield (" ".join(words[:-1]) + "\n").encode()
        yield f"{words[-1]}\n".encode()


def _without_last_rows(content: bytes) -> Iterator[bytes]:
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(content)
        tables = [bases.quoted(name) for name in bases.table_names(base)]
        for keep in ("max(rowid)", "max(rowid), min(rowid)"):
            for table in tables:
                for end in keep.split(", "):
                    base.execute(f"delete from {table} where rowid = (select {end} from {table})")  # noqa: S608
            base.commit()
            yield base.serialize()
    except sqlite3.Error:  # no rowid, or a trigger that forbids it: such a base stays as it is
        return
    finally:
        base.close()
