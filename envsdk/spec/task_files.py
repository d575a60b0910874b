"""The files of a task directory that its meaning rests on: read, and reported where they are missing or broken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from envsdk.spec.directory import TaskDirectory
from envsdk.spec.meaning import Beside, without_canary
from envsdk.spec.problems import Problem, shown
from envsdk.spec.support import check_support, composed
from envsdk.spec.tables import TaskToml


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
