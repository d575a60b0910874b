"""What an attacker can know and touch: the verifier's texts, the paths they name, and where the agent may write."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from envsdk.checks.lint.files import read_task_files
from envsdk.checks.outputs import hash_files, read_files
from envsdk.checks.scene import Scene
from envsdk.checks.stage import OracleRun, Stage
from envsdk.checks.targets import target_files
from envsdk.sandboxes.base import Sandbox

WRONG = b"x\n"
"""A submission that is right nowhere."""
_PATH = re.compile(r"(?<![\w.$}:/-])(?:/[\w.@+-]+)+")
_OURS = re.compile(r"/(?:tests|logs|solution|dev|proc|sys|usr|bin|sbin|lib|lib64|etc|run)(?:/|$)")
_FILE = re.compile(r"(?<![\w.$}/*@+-])[\w-][\w.+-]*\.[A-Za-z]\w{0,9}(?![\w/(])")
_MODULES = ("PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB")
MAX_NAMES = 40
_MAX_FILES = 200
_ASSIGNED = re.compile(r"\b(?P<name>PATH|PYTHONPATH|NODE_PATH)=[\"']?(?P<value>[^\s\"';]+)")


@dataclass(frozen=True, slots=True)
class Attack:
    """One attempt: a name that says what is done, and the scene that does it.

    ``control``: the same without what makes it an attack; where that earns the reward too, the attack did nothing.
    """

    name: str
    scene: Scene
    control: Scene | None = None


@dataclass(frozen=True)
class Ground:
    """What attacks are made from.

    Attributes:
        tests: texts of the verifier's files, by path inside the task.
        oracle: the oracle's passing run.
        targets: files that a submission consists of.
        writable: paths outside the targets that the verifier names and the agent may write; True where they exist.
        folders: folders where the agent may write and the verifier may look for modules and settings.
        named_folders: folders that the verifier names and the agent may write in.
        contents: of the files among ``writable``.
        path_folders: folders on the verifier's PATH where the agent may write.
        user, workdir: of the agent.
    """

    tests: Mapping[str, str]
    oracle: OracleRun
    targets: tuple[str, ...]
    writable: Mapping[str, bool]
    folders: tuple[str, ...]
    path_folders: tuple[str, ...]
    user: str
    workdir: str
    instruction: str
    base: Mapping[str, bytes] = field(default_factory=dict)
    named_folders: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Everything the verifier says, in one text."""
        return "\n".join(self.tests.values())

    def mentions(self, words: str) -> bool:
        """One of the alternatives of a regular expression stands in the verifier as a word."""
        return re.search(rf"(?<![\w-])(?:{words})(?![\w-])", self.text) is not None


async def survey(stage: Stage, run: OracleRun) -> Ground:
    """Look at the box as the agent sees it. Raises `SandboxError`."""
    spec = stage.task.spec
    tests = read_task_files(stage.task).under("tests")
    text = "\n".join(tests.values())
    workdir = spec.container.workdir if spec.container else "/app"
    targets = tuple(await target_files(stage))
    named = {path.rstrip("./") for path in _PATH.findall(text) if not _OURS.match(path)}
    named -= {*targets, *_folders_of(targets), workdir.rstrip("/"), ""}
    # Names without a folder mean the workspace, where the verifier goes there first.
    relative = {f"{workdir.rstrip('/')}/{name}" for name in sorted(set(_FILE.findall(text)))[:MAX_NAMES]}
    relative -= {*targets, *named}
    assigned = list(_ASSIGNED.finditer(text))
    async with stage.box(Scene()) as box:
        path = (await box.exec('printf %s "$PATH"', user="root")).stdout.decode("utf-8", "replace").split(":")
        home = (await box.exec('printf %s "$HOME"', user=spec.agent.user)).stdout.decode("utf-8", "replace")
        path += [part for match in assigned if match["name"] == "PATH" for part in match["value"].split(":")]
        modules = [part for match in assigned if match["name"] != "PATH" for part in match["value"].split(":")]
        variables = " ".join(f'"${name}"' for name in _MODULES)
        told = await box.exec(f"printf '%s:' {variables}", user="root")
        modules += told.stdout.decode("utf-8", "replace").split(":")
        path_folders = {part if part.startswith("/") else workdir for part in path if "$" not in part}
        module_folders = {part for part in modules if part.startswith("/")}
        folders = {workdir, home, f"{workdir}/tests", *module_folders, *(part.rpartition("/")[0] for part in named)}
        asked = sorted(named | relative | path_folders | {folder for folder in folders if folder})
        spoken = {path for path in await _files(box, workdir) if is_spoken(path, workdir, text)} - {*targets}
        may = await _permissions(box, sorted({*asked, *spoken}), spec.agent.user)
        named |= {path for path in {*relative, *spoken} if may.get(path) == "file"}
        held = await hash_files(box, sorted(path for path in named if may.get(path) == "file"))
        contents = await read_files(box, held)
    return Ground(
        tests=tests,
        oracle=run,
        targets=targets,
        writable={item: may[item] == "file" for item in sorted(named) if may.get(item) in {"file", "new"}},
        folders=tuple(item for item in sorted(folders) if may.get(item) in {"folder", "new"}),
        path_folders=tuple(item for item in sorted(path_folders) if may.get(item) in {"folder", "new"}),
        user=spec.agent.user,
        workdir=workdir,
        instruction=spec.instruction,
        base={item: WRONG for item in targets if item not in run.before},
        named_folders=tuple(item for item in sorted(named) if may.get(item) == "folder"),
        contents=contents,
    )


async def _files(box: Sandbox, workdir: str) -> list[str]:
    """Files of the workspace that are not deep in it, at most `_MAX_FILES`."""
    command = f"find {shlex.quote(workdir)} -maxdepth 3 -type f 2>/dev/null | LC_ALL=C sort | head -n {_MAX_FILES}"
    listed = await box.exec(command, user="root", cwd="/")
    return listed.stdout.decode("utf-8", "replace").splitlines()


def is_spoken(path: str, workdir: str, text: str) -> bool:
    """The verifier says a file's name, or its path from the workspace, with no other folder in front."""
    name = path.rsplit("/", 1)[-1]
    said = "|".join(map(re.escape, {name, path.removeprefix(f"{workdir.rstrip('/')}/")}))
    return len(name) > 1 and re.search(rf"(?<![\w./-])(?:\./)?(?:{said})(?![\w/-]|\.\w)", text) is not None


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder above some paths."""
    return {str(folder) for path in paths for folder in PurePosixPath(path).parents}


async def _permissions(box: Sandbox, paths: list[str], user: str) -> dict[str, str]:
    """For each path that the agent may write: ``file``, ``folder``, or ``new`` where only its folder lets it."""
    words = " ".join(map(shlex.quote, paths))
    script = (
        f'for p in {words}; do d=$p; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; [ -w "$d" ] || '
        '{ [ -f "$p" ] && [ -w "$(dirname "$p")" ]; } || continue; '
        'if [ -d "$p" ]; then k=folder; elif [ -e "$p" ]; then k=file; else k=new; fi; echo "$k $p"; done; true'
    )
    listed = await box.exec(script, user=user, cwd="/")
    lines = listed.stdout.decode("utf-8", "replace").splitlines()
    return {path: kind for kind, _, path in (line.partition(" ") for line in lines)}
