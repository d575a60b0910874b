"""Terminal-Bench 1 task directories in.

The tests run where the agent worked, as there. How their result becomes a reward is chosen, never guessed: ``exit``:
the status of ``run-tests.sh``; ``parser``: every test of pytest's summary passed. The parser refuses what
Terminal-Bench's own takes for success: a summary without rows, only skipped tests, coloured rows, a second forged
summary (`envsdk.formats.pytest_summary`).

Rejected: more services than ``client``, another parser than pytest's, no instruction. An oracle that types into a
terminal (``solution.yaml`` with keys) is left out with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from envsdk.errors import EnvsdkError, UsageError
from envsdk.formats import pytest_summary
from envsdk.formats.result import ImportResult, free_place
from envsdk.spec.contents import FileContent, read_contents
from envsdk.spec.dump import dump_task
from envsdk.spec.load import LoadWarning, Rejected, printable
from envsdk.spec.meaning import slug_of
from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, Task, TaskSpec, VerifierSpec

Rule = Literal["exit", "parser"]
_OWN = {"task.yaml", "run-tests.sh", "solution.sh", "solution.yaml", "docker-compose.yaml"}
_RUN = """#!/bin/bash
# The reward follows the rule {rule!r}; a script that breaks off writes none.
export TEST_DIR=/tests T_BENCH_TEST_DIR=/tests
mkdir -p /logs/verifier
bash /tests/run-tests.sh > /logs/verifier/test-stdout.txt 2>&1
status=$?
cat /logs/verifier/test-stdout.txt
{score}
"""
_SCORES: Mapping[str, str] = {
    "exit": 'if [ "$status" -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt',
    "parser": (
        "python3 -I -B /tests/pytest_summary.py < /logs/verifier/test-stdout.txt > /logs/verifier/reward.draft &&\n"
        "    mv /logs/verifier/reward.draft /logs/verifier/reward.txt"
    ),
}


def import_terminal_bench(source: Path, dest: Path, *, rule: Rule) -> ImportResult:
    """Convert every directory with a ``task.yaml`` at or below ``source`` to ``dest/<slug>``."""
    result = ImportResult()
    places = [source] if (source / "task.yaml").is_file() else sorted(p.parent for p in source.glob("**/task.yaml"))
    if not places:
        result.rejected.append(Rejected(path=printable(source), code="not_a_task", why="there is no task.yaml"))
    for place in places:
        path = printable(place)
        try:
            spec, files, warnings = _converted(place, rule)
        except EnvsdkError as error:
            result.rejected.append(Rejected(path=path, code=error.code, why=error.message))
            continue
        result.warnings += [LoadWarning(path=path, code=code, why=why) for code, why in warnings]
        result.add(path, lambda spec=spec, files=files: _write(spec, files, dest))  # type: ignore[misc]
    return result


def _write(spec: TaskSpec, files: Mapping[str, FileContent], dest: Path) -> Task:
    return dump_task(spec, files, free_place(dest, spec.slug))


def _converted(place: Path, rule: Rule) -> tuple[TaskSpec, dict[str, FileContent], list[tuple[str, str]]]:
    table = _table(place)
    contents = read_contents(place)
    if "run-tests.sh" not in contents:
        raise UsageError("has no run-tests.sh", code="missing_file")
    parser = table.get("parser_name", "pytest")
    if rule == "parser" and parser != "pytest":
        raise UsageError(f"its parser is {parser!r}: only pytest's is known", code="unsupported_parser")
    _check_services(contents)
    warnings = []
    files = {
        f"environment/{path}": content
        for path, content in contents.items()
        if path not in _OWN and not path.startswith("tests/")
    }
    files |= {path: content for path, content in contents.items() if path.startswith("tests/")}
    files["tests/run-tests.sh"] = contents["run-tests.sh"]
    files["tests/test.sh"] = FileContent(_RUN.format(rule=rule, score=_SCORES[rule]).encode(), executable=True)
    if rule == "parser":
        files["tests/pytest_summary.py"] = FileContent(Path(pytest_summary.__file__).read_bytes())
    oracle, why = _oracle(contents)
    if oracle is not None:
        files["solution/solve.sh"] = oracle
    else:
        warnings.append(("no_oracle", why))
    spec = TaskSpec(
        slug=slug_of(place.name),
        instruction=_instruction(table),
        agent=AgentSpec(user="root"),
        container=ContainerSpec(network="public"),
        verifier=VerifierSpec(mode="shared", network="public"),
        budget=Budget(
            episode_s=_seconds(table, "max_agent_timeout_sec", 360.0),
            verify_s=_seconds(table, "max_test_timeout_sec", 60.0),
        ),
        tags=tuple(tag for tag in table.get("tags") or [] if isinstance(tag, str)),
        metadata={
            key: table[key] for key in ("author_name", "author_email", "difficulty", "category") if table.get(key)
        },
    )
    return spec, files, warnings


def _table(place: Path) -> dict[str, Any]:
    try:
        table = yaml.safe_load((place / "task.yaml").read_bytes())
    except yaml.YAMLError as error:
        raise UsageError(f"task.yaml is not YAML: {error}", code="bad_yaml") from error
    if not isinstance(table, dict):
        raise UsageError("task.yaml is no mapping", code="bad_yaml")
    return table


def _instruction(table: Mapping[str, Any]) -> str:
    text = table.get("instruction")
    rows = table.get("descriptions")
    if not text and isinstance(rows, list):
        named = {row.get("key"): row.get("description") for row in rows if isinstance(row, dict)}
        text = named.get("base") or next(iter(named.values()), None)
    if not isinstance(text, str) or not text.strip():
        raise UsageError("task.yaml has no instruction", code="empty_instruction")
    return text


def _seconds(table: Mapping[str, Any], name: str, default: float) -> float:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise UsageError(f"{name} is {value!r}, not a number of seconds", code="bad_value")
    return float(value)


def _check_services(contents: Mapping[str, FileContent]) -> None:
    compose = contents.get("docker-compose.yaml")
    if compose is None:
        return
    try:
        table = yaml.safe_load(compose.data)
    except yaml.YAMLError as error:
        raise UsageError(f"docker-compose.yaml is not YAML: {error}", code="bad_yaml") from error
    services = set((table or {}).get("services") or {}) if isinstance(table, dict) else set()
    if services - {"client"}:
        more = ", ".join(sorted(services - {"client"}))
        raise UsageError(f"has services beside client: {more}", code="unsupported_services")


def _oracle(contents: Mapping[str, FileContent]) -> tuple[FileContent | None, str]:
    if "solution.sh" in contents:
        return FileContent(contents["solution.sh"].data, executable=True), ""
    if "solution.yaml" not in contents:
        return None, "there is no solution"
    try:
        steps = yaml.safe_load(contents["solution.yaml"].data)
    except yaml.YAMLError:
        return None, "solution.yaml is not YAML"
    commands = [step.get("command") if isinstance(step, dict) else None for step in steps or []]
    plain = [command for command in commands if isinstance(command, str) and command.isprintable()]
    if (
        not plain
        or len(plain) != len(commands)
        or any(isinstance(s, dict) and s.get("append_enter") is False for s in steps)
    ):
        return None, "solution.yaml types into a terminal"
    return FileContent(("#!/bin/bash\n" + "\n".join(plain) + "\n").encode(), executable=True), ""
