"""What makes a directory a valid task beyond its tables' types: files that must be there, values that must agree."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from envsdk.spec.directory import TaskDirectory
from envsdk.spec.environ import required_names
from envsdk.spec.meaning import Beside, mib_of, without_canary
from envsdk.spec.model import TaskSpec
from envsdk.spec.problems import Problem, dotted, shown
from envsdk.spec.support import check_support, composed
from envsdk.spec.tables import NEWEST_SCHEMA, EnvironmentTable, TaskToml, unknown_fields
from envsdk.suggest import did_you_mean

_VERSION = re.compile(r"^(\d+)(?:\.(\d+))?(?:\.\d+)?$")
_KNOWN_BY_OTHERS = {"author_name", "author_email", "difficulty", "category", "tags"}


def parse_toml(directory: TaskDirectory) -> tuple[dict[str, Any] | None, list[Problem]]:
    """The raw tables of ``task.toml``, or `None` and why not."""
    if not directory.is_file("task.toml"):
        return None, [Problem(code="missing_file", file="task.toml", message="is a link", hint="make it a file")]
    text, problems = directory.read_text("task.toml")
    if text is None:
        return None, problems
    try:
        return tomllib.loads(text), problems
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        found = text.splitlines()[int(line[1]) - 1] if line and int(line[1]) <= len(text.splitlines()) else ""
        hint = "TOML writes strings in quotes, true and false in lower case, and each key once"
        return None, [
            *problems,
            Problem(code="bad_toml", file="task.toml", message=f"is not TOML: {error}", value=shown(found), hint=hint),
        ]


def check_toml(raw: Mapping[str, Any]) -> list[Problem]:
    """Findings on the raw tables: schema, unknown fields, numbers that are none."""
    future = _future_schema(raw)
    if future is not None:
        return [future]
    problems = [
        Problem(
            code="out_of_range",
            file="task.toml",
            field=dotted(place),
            message="must be finite",
            value=str(value),
            hint="write a number",
        )
        for place, value in _not_finite(raw, ())
    ]
    for place, known in unknown_fields(TaskToml, raw):
        word = str(place[-1])
        hint = did_you_mean(word, known)
        problems.append(
            Problem(
                code="unknown_field",
                file="task.toml",
                field=dotted(place),
                message=f"unknown field {word!r}",
                value=word,
                hint=hint or ("" if word in _KNOWN_BY_OTHERS else "it is kept but has no effect"),
                severity="error" if hint else "warning",
            )
        )
    return problems


def _future_schema(raw: Mapping[str, Any]) -> Problem | None:
    name = "schema_version" if "schema_version" in raw else "version"
    version = str(raw.get(name, "1.0"))
    match = _VERSION.match(version)
    newest = ".".join(map(str, NEWEST_SCHEMA))
    if match and (int(match[1]), int(match[2] or 0)) <= NEWEST_SCHEMA:
        return None
    return Problem(
        code="future_schema" if match else "bad_value",
        file="task.toml",
        field=name,
        message=f"schema {version!r} is newer than {newest}" if match else f"{version!r} is no schema version",
        value=version,
        hint="upgrade envsdk, or export the task in an older schema" if match else f"write it as {newest!r}",
    )


def _not_finite(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_finite(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _not_finite(item, (*place, number))


def check_files(directory: TaskDirectory, toml: TaskToml) -> tuple[Beside, list[Problem]]:
    """Read the files that the meaning rests on, and report those that are missing or broken."""
    problems: list[Problem] = []

    def read(path: str) -> str | None:
        text, found = directory.read_text(path)
        problems.extend(found)
        return text

    instruction = read("instruction.md")
    steps = {step.name: read(f"steps/{step.name}/instruction.md") or "" for step in toml.steps}
    problems += _check_instructions(directory, instruction, steps)
    dockerfile = read("environment/Dockerfile") or ""
    params: dict[str, Any] = {}
    own = toml.metadata.envsdk
    kind = own.verifier.kind if own else "script"
    if kind != "script":
        params, found = _params(read("tests/params.json"), "tests/params.json")
        problems += found
        for name in steps:
            file = f"steps/{name}/tests/params.json"
            problems += _params(read(file), file)[1]
    problems += _check_verifier_files(directory, toml, kind)
    compose, found = composed(directory, toml)
    problems += found
    problems += check_support(toml)
    if not (
        directory.has_folder("environment") or (toml.environment and toml.environment.docker_image) or kind == "text"
    ):
        hint = "add environment/Dockerfile, or name an image in [environment].docker_image"
        problems.append(Problem(code="missing_file", file="environment/Dockerfile", message="is missing", hint=hint))
    beside = Beside(
        name=str(directory.root.resolve().name),
        instruction=without_canary(instruction or "") if not toml.steps else "",
        step_instructions={name: without_canary(text) for name, text in steps.items()},
        dockerfile=dockerfile,
        params=params,
        own_verifier_image=directory.is_file("tests/Dockerfile") or directory.is_file("tests/docker-compose.yaml"),
        verifier_dockerfile=read("tests/Dockerfile") or "",
        compose=compose,
    )
    if instruction and beside.instruction != instruction and not toml.steps:
        message = "starts with a canary line, which models are not shown"
        problems.append(Problem(code="canary", file="instruction.md", message=message, severity="warning"))
    return beside, problems


def _check_instructions(
    directory: TaskDirectory, instruction: str | None, steps: Mapping[str, str]
) -> Iterator[Problem]:
    files: dict[str, str | None] = {f"steps/{name}/instruction.md": text for name, text in steps.items()}
    files = files or {"instruction.md": instruction}
    for file, text in files.items():
        if not directory.is_file(file):
            yield Problem(code="missing_file", file=file, message="is missing", hint="say what the agent is to do")
        elif text is not None and not without_canary(text).strip():
            yield Problem(code="empty_instruction", file=file, message="is empty", hint="say what the agent is to do")


def _params(text: str | None, file: str) -> tuple[dict[str, Any], list[Problem]]:
    if text is None:
        return {}, []
    try:
        value = json.loads(text)
    except ValueError as error:
        return {}, [Problem(code="bad_json", file=file, message=f"is not JSON: {error}", hint="write one JSON object")]
    if not isinstance(value, dict):
        message = "must be one JSON object"
        return {}, [Problem(code="wrong_type", file=file, message=message, value=shown(value), hint='{"key": value}')]
    return value, []


def _check_verifier_files(directory: TaskDirectory, toml: TaskToml, kind: str) -> Iterator[Problem]:
    own = toml.metadata.envsdk
    if kind != "script" and own is not None:
        file, separator, function = own.verifier.entry.partition("::")
        if not (separator and file.startswith("tests/") and function.isidentifier()):
            yield Problem(
                code="bad_value",
                file="task.toml",
                field="metadata.envsdk.verifier.entry",
                message="must name a function of a file under tests/",
                value=own.verifier.entry,
                hint="write it as tests/verifier.py::function",
            )
        elif not directory.is_file(file):
            yield Problem(code="missing_file", file=file, message="is missing", hint="the verifier's entry names it")
        return
    folders = [f"steps/{step.name}/tests" for step in toml.steps] or ["tests"]
    for folder in folders:
        if directory.is_file(f"{folder}/test.sh") or directory.is_file("tests/test.sh"):
            continue
        if directory.is_file(f"{folder}/test.bat"):
            message = "only a Windows verifier (test.bat): not supported"
            yield Problem(code="unsupported_os", file=f"{folder}/test.bat", message=message, hint="add test.sh")
        else:
            yield Problem(code="missing_file", file=f"{folder}/test.sh", message="is missing", hint="add a verifier")


def check_spec(spec: TaskSpec, toml: TaskToml) -> list[Problem]:
    """Findings on values that must agree with one another."""
    problems: list[Problem] = []
    environments = [("environment", toml.environment), ("verifier.environment", toml.verifier.environment)]
    for name, table in environments:
        if table is not None:
            problems += _check_environment(name, table)
    names = [service.name for service in spec.services]
    problems += [
        _own("services", f"two services are called {name!r}", name)
        for name in sorted({n for n in names if names.count(n) > 1})
    ]
    for number, service in enumerate(spec.services):
        for other in service.after:
            if other not in names[:number]:
                message, hint = f"{service.name} starts after {other!r}, which is none before it", "order them so"
                problems.append(_own("services.after", message, other, did_you_mean(other, names) or hint))
    if spec.services and spec.container is not None and spec.container.network == "none":
        problems.append(
            _own("services", "the agent's network is none: it cannot reach them", "", "set container.network")
        )
    verifier = spec.verifier
    if verifier.pass_mark is not None and not verifier.low < verifier.pass_mark <= verifier.high:
        where = f"outside ]{verifier.low}, {verifier.high}]"
        problems.append(_own("verifier.pass_mark", f"{verifier.pass_mark} is {where}", str(verifier.pass_mark)))
    if verifier.kind == "text" and spec.agent.protocol == "shell":
        message = "a text verifier judges an answer, and a shell leaves none"
        problems.append(_own("agent.protocol", message, "shell", "use 'answer' or 'command', or a state verifier"))
    return problems


def _own(field: str, message: str, value: str, hint: str = "") -> Problem:
    return Problem(
        code="bad_value", file="task.toml", field=f"metadata.envsdk.{field}", message=message, value=value, hint=hint
    )


def _check_environment(name: str, table: EnvironmentTable) -> Iterator[Problem]:
    if table.os == "windows":
        yield Problem(
            code="unsupported_os",
            file="task.toml",
            field=f"{name}.os",
            message="Windows is not supported",
            value="windows",
        )
    for legacy, modern in (("memory", "memory_mb"), ("storage", "storage_mb")):
        text = getattr(table, legacy)
        if text is None:
            continue
        size = mib_of(text)
        if size is None:
            yield Problem(
                code="bad_value",
                file="task.toml",
                field=f"{name}.{legacy}",
                message=f"{text!r} is no size",
                value=text,
                hint=f"write {modern} = 2048, or {legacy} = '2G'",
            )
        elif getattr(table, modern) not in {None, size}:
            yield Problem(
                code="conflicting_fields",
                file="task.toml",
                field=f"{name}.{legacy}",
                message=f"{text!r} and {modern} = {getattr(table, modern)} disagree",
                value=text,
                hint=f"keep {modern} only",
            )
    if (
        table.allow_internet is not None
        and table.network_mode is not None
        and table.allow_internet != (table.network_mode != "no-network")
    ):
        yield Problem(
            code="conflicting_fields",
            file="task.toml",
            field=f"{name}.allow_internet",
            message=f"{table.allow_internet} and network_mode = {table.network_mode!r} disagree",
            value=str(table.allow_internet),
            hint="keep network_mode only",
        )
    for key, value in table.env.items():
        for missing in required_names(value):
            message = f"takes {missing} from the machine it runs on"
            yield Problem(
                code="env_reference",
                file="task.toml",
                field=f"{name}.env.{key}",
                message=message,
                value=value,
                hint="say in the task's README what it needs; who runs it without gets `env_missing`",
                severity="warning",
            )
