"""From a declaration and a draw to a task directory: Python verifiers as their module's source and a name.

What is written is a Harbor task: ``tests/test.sh`` runs a Python verifier in a sandbox without envsdk, by the runner
that lies beside it. Oracle and author's wrong answers stand outside ``tests/`` and ``environment/``, so that neither
the agent nor the verifier meets them.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from envsdk.authoring.declare import Declaration, PythonVerifier, Script
from envsdk.authoring.draw import Draw, Scalar, Step, content_of, named
from envsdk.errors import UsageError
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.meaning import ANSWER_PATH
from envsdk.spec.model import Protocol, StepSpec, Task, TaskSpec, VerifierSpec

_RUNNER = Path(__file__).with_name("runner.py")
_PACKAGE = Path(__file__).parents[1]
_USES_GRADERS = re.compile(
    rb"^\s*(?:from|import)\s+envsdk\.graders\b|^\s*from\s+envsdk\s+import\s.*\bgraders\b", re.MULTILINE
)
_HEAD = """ARG BASE=python:3.12-slim
FROM ${BASE}
RUN id agent >/dev/null 2>&1 || useradd --create-home agent
"""


def write_task(
    declaration: Declaration,
    draw: Draw,
    dest: Path,
    *,
    slug: str,
    level: Mapping[str, Scalar] | None = None,
    seed: int | None = None,
) -> Task:
    """Write one draw as the task directory ``dest`` and load it.

    Raises:
        UsageError: the draw has no oracle, its params do not fit the verifier, or the verifier has no source file
            (codes ``no_oracle``, ``params_mismatch``, ``no_source``); ``dest`` is taken.
        SpecError: the result is no valid task.
    """
    try:
        return _written(declaration, draw, dest, slug=slug, level=level, seed=seed)
    except UsageError as error:
        # A file declares many: whose fault it is, an author must be told by the task's name.
        error.where = slug if error.where in {"", slug} else f"{slug}: {error.where}"
        raise


def _written(
    declaration: Declaration,
    draw: Draw,
    dest: Path,
    *,
    slug: str,
    level: Mapping[str, Scalar] | None,
    seed: int | None,
) -> Task:
    agent = draw.agent or declaration.agent
    artifacts = declaration.artifacts or ((ANSWER_PATH,) if agent.protocol in {"answer", "command"} else ())
    spec = TaskSpec(
        slug=slug,
        instruction=draw.instruction,
        agent=agent,
        container=declaration.container,
        services=declaration.services,
        verifier=_verifier_spec(declaration.verifier, draw.params),
        budget=draw.budget or declaration.budget,
        artifacts=artifacts,
        steps=tuple(_step_spec(step) for step in draw.steps),
        step_reward=draw.step_reward if draw.steps else "mean",
        family=declaration.name if declaration.is_family else "",
        level=dict(level or {}),
        seed=seed,
        tags=declaration.tags,
        description=declaration.description,
    )
    files = {
        **_environment(declaration, draw),
        **_tests(declaration.verifier, draw, artifacts),
        **(_solution(declaration, draw, agent.protocol, artifacts) if not draw.steps else {}),
    }
    for step in draw.steps:
        files |= _step_files(declaration.verifier, step, agent.protocol, artifacts)
    return dump_task(spec, files, dest)


def _step_spec(step: Step) -> StepSpec:
    least = step.min_reward
    gate = dict(least) if isinstance(least, Mapping) else {"reward": float(least)}
    return StepSpec(name=step.name, instruction=step.instruction, min_reward=gate, artifacts=step.artifacts)


def _step_files(
    verifier: PythonVerifier | Script, step: Step, protocol: Protocol, artifacts: tuple[str, ...]
) -> dict[str, FileContent]:
    """Files of ``steps/<name>/``; what is common to all steps lies in the task's own folders."""
    if not step.oracle:
        raise UsageError("has no oracle", code="no_oracle", where=step.name, hint="give Step(oracle=...)")
    answer = (step.artifacts or artifacts or (ANSWER_PATH,))[0]
    files = {f"workdir/{path}": content_of(value) for path, value in step.files.items()}
    files |= {f"tests/{path}": content_of(value) for path, value in step.tests.items()}
    if isinstance(verifier, PythonVerifier):
        _check_params(verifier, step.params)
        files["tests/params.json"] = _params(step.params)
    files |= reply_files(step.oracle, protocol=protocol, answer_path=answer)
    return {f"steps/{step.name}/{path}": content for path, content in files.items()}


def _verifier_spec(verifier: PythonVerifier | Script, params: Mapping[str, Any]) -> VerifierSpec:
    mode = verifier.mode if isinstance(verifier, Script) else "separate"
    if isinstance(verifier, Script) or verifier.kind == "sandbox":
        exit_status: Literal["native", "harbor"] = "harbor" if isinstance(verifier, Script) else "native"
        return VerifierSpec(
            kind="script",
            mode=mode,
            low=verifier.low,
            high=verifier.high,
            pass_mark=verifier.pass_mark,
            exit_status=exit_status,
        )
    return VerifierSpec(
        kind=verifier.kind,
        entry=f"tests/verifier.py::{verifier.function.__name__}",
        params=dict(params),
        low=verifier.low,
        high=verifier.high,
        pass_mark=verifier.pass_mark,
        exit_status="native",
    )


def _environment(declaration: Declaration, draw: Draw) -> dict[str, FileContent]:
    workdir = declaration.container.workdir if declaration.container else "/app"
    files = {f"environment/files/{path}": content_of(value) for path, value in draw.files.items()}
    more = {f"environment/{path}": content_of(value) for path, value in draw.environment.items()}
    if declaration.container is not None and declaration.container.image is not None:
        return more
    text = declaration.dockerfile or default_dockerfile(workdir=workdir, has_files=bool(files))
    return {"environment/Dockerfile": FileContent(text.encode()), **files, **more}


def _tests(verifier: PythonVerifier | Script, draw: Draw, artifacts: tuple[str, ...]) -> dict[str, FileContent]:
    more = {f"tests/{path}": content_of(value) for path, value in draw.tests.items()}
    if isinstance(verifier, Script):
        return {"tests/test.sh": FileContent(verifier.text.encode(), executable=True), **more}
    function = verifier.function
    if not draw.steps:
        _check_params(verifier, draw.params)
    answer = artifacts[0] if artifacts else ANSWER_PATH
    kind = "text" if verifier.kind == "text" else "state"
    return {
        **python_verifier_files(_source_of(function), function.__name__, kind=kind, answer_path=answer),
        "tests/params.json": _params(draw.params),
        **more,
    }


def _params(params: Mapping[str, Any]) -> FileContent:
    try:
        text = json.dumps(dict(params), ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        hint = "give texts, finite numbers, booleans, lists and mappings"
        raise UsageError(f"its params are no JSON: {error}", code="params_mismatch", hint=hint) from error
    return FileContent(f"{text}\n".encode())


def python_verifier_files(
    source: bytes, function: str, *, kind: str, answer_path: str = ANSWER_PATH
) -> dict[str, FileContent]:
    """Files of ``tests/`` for a Python verifier: its module, and the script and runner that judge in a sandbox."""
    script = f"#!/bin/sh\nexec python3 -I -B /tests/run_verifier.py {function} {kind} {shlex.quote(answer_path)}\n"
    return {
        "tests/test.sh": FileContent(script.encode(), executable=True),
        "tests/run_verifier.py": FileContent(_RUNNER.read_bytes()),
        "tests/verifier.py": FileContent(source),
        **_bundle(source, kind),
    }


def _bundle(source: bytes, kind: str) -> dict[str, FileContent]:
    """What of envsdk the verifier needs where envsdk is not: the task keeps what it was written with."""
    files = [_PACKAGE / "authoring" / "state.py"] if kind == "state" else []
    if _USES_GRADERS.search(source):
        files += [_PACKAGE / "errors.py", *sorted((_PACKAGE / "graders").glob("*.py"))]
    return {f"tests/_envsdk/{file.relative_to(_PACKAGE).as_posix()}": FileContent(file.read_bytes()) for file in files}


def reply_files(reply: str, *, protocol: Protocol, answer_path: str = ANSWER_PATH) -> dict[str, FileContent]:
    """Files of ``solution/`` for an oracle's reply: what it says, and the script that leaves it in a sandbox."""
    if protocol == "shell":
        return {"solution/solve.sh": FileContent(_as_script(reply), executable=True)}
    target = shlex.quote(answer_path)
    read = 'cat "$(dirname "$0")/answer.txt"'
    line = f"{read} > {target}" if protocol == "answer" else f'sh -c "$({read})" > {target}'
    return {
        "solution/answer.txt": FileContent(reply.encode()),
        "solution/solve.sh": FileContent(f"#!/bin/sh\n{line}\n".encode(), executable=True),
    }


def mutant_files(
    replies: Sequence[str] | Mapping[str, str], side: str, *, protocol: Protocol
) -> dict[str, FileContent]:
    """Files of ``mutants/``: other replies, ``wrong`` or ``right``."""
    if protocol == "shell":
        return {
            f"mutants/{side}/{name}.sh": FileContent(_as_script(text), executable=True)
            for name, text in named(replies).items()
        }
    return {f"mutants/{side}/{name}.txt": FileContent(text.encode()) for name, text in named(replies).items()}


def default_dockerfile(*, workdir: str = "/app", has_files: bool = False) -> str:
    """An image with the agent's user and its work directory, which ``environment/files/`` is copied into."""
    copy = f"COPY files/ {workdir}/\n" if has_files else ""
    return f"{_HEAD}WORKDIR {workdir}\n{copy}RUN chown -R agent:agent {shlex.quote(workdir)}\n"


def _check_params(verifier: PythonVerifier, params: Mapping[str, Any]) -> None:
    try:
        inspect.signature(verifier.function).bind(object(), **params)
    except TypeError as error:
        raise UsageError(
            f"its params do not fit: {error}",
            code="params_mismatch",
            where=verifier.function.__name__,
            hint="give exactly the keywords that the verifier takes",
        ) from error


def _source_of(function: Any) -> bytes:
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    if file is None or not Path(file).is_file():
        hint = "put the verifier in a file"
        raise UsageError("its module has no source file", code="no_source", where=function.__name__, hint=hint)
    return Path(file).read_bytes()


def _solution(
    declaration: Declaration, draw: Draw, protocol: Protocol, artifacts: tuple[str, ...]
) -> dict[str, FileContent]:
    reply = declaration.oracle(draw) if declaration.oracle and not draw.oracle else draw.oracle
    if not reply:
        hint = "give Draw(oracle=...) or @oracle"
        raise UsageError("has no oracle", code="no_oracle", where=declaration.name, hint=hint)
    return {
        **reply_files(reply, protocol=protocol, answer_path=artifacts[0] if artifacts else ANSWER_PATH),
        **mutant_files(draw.wrong, "wrong", protocol=protocol),
        **mutant_files(draw.right, "right", protocol=protocol),
    }


def _as_script(text: str) -> bytes:
    body = text if text.startswith("#!") else f"#!/bin/sh\nset -eu\n{text}"
    return (body if body.endswith("\n") else f"{body}\n").encode()
