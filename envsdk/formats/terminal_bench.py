"""Terminal-Bench 1 task directories in.

The tests run where the agent worked, as there. How their result becomes a reward is chosen, never guessed: ``exit``:
the status of ``run-tests.sh``; ``parser``: what it printed, as the task's own parser reads it. Of the parsers, pytest's
and SWE-bench's are known, without the faults of Terminal-Bench's own: a summary without rows, only skipped tests,
coloured rows or a second, forged summary are no success (`envsdk.formats.pytest_summary`,
`envsdk.formats.marked_verdict`).

Services beside ``client`` become services of ours (`envsdk.spec.compose`). Rejected, each with a code: what compose
asks and cannot be had, a parser that is not known or that the chosen rule would pass over, no instruction, and a
Dockerfile that copies the tests or the solution to where the agent finds them. An oracle that types into a terminal
(``solution.yaml`` with keys) is left out with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from envsdk.errors import EnvsdkError, UsageError
from envsdk.formats import marked_verdict, pytest_summary
from envsdk.formats.canary import canaries, canary_warning
from envsdk.formats.result import ImportResult, Walk, free_place, quietly
from envsdk.spec.compose import Compose, read_compose
from envsdk.spec.contents import FileContent, read_contents
from envsdk.spec.dump import dump_task
from envsdk.spec.load import LoadWarning, Rejected, printable
from envsdk.spec.meaning import slug_of, workdir_of
from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, Task, TaskSpec, VerifierSpec
from envsdk.spec.problems import Problem

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
_BY_STATUS = 'if [ "$status" -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt'
_BY_OUTPUT = """python3 -I -B /tests/{parser} < /logs/verifier/test-stdout.txt > /logs/verifier/reward.draft &&
    mv /logs/verifier/reward.draft /logs/verifier/reward.txt"""
_PARSERS: Mapping[str, tuple[str, str]] = {
    "pytest": ("pytest_summary.py", pytest_summary.__file__),
    "swebench": ("marked_verdict.py SWEBench", marked_verdict.__file__),
}
_KNOWN = {
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH": "logs",
    "T_BENCH_CONTAINER_LOGS_PATH": "logs",
    "T_BENCH_TASK_AGENT_LOGS_PATH": "logs",
    "T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME": "",
    "T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME": "",
    "T_BENCH_TASK_LOGS_PATH": "logs",
    "T_BENCH_TEST_DIR": "/tests",
}
_MAPPING = "a task.yaml holds keys and values, `instruction` among them"
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s+(?:--\S+\s+)*(?P<words>.+)$", re.IGNORECASE | re.MULTILINE)
_METADATA = (
    "author_name",
    "author_email",
    "difficulty",
    "category",
    "expert_time_estimate_min",
    "junior_time_estimate_min",
)


def import_terminal_bench(source: Path, dest: Path, *, rule: Rule, walk: Walk = quietly) -> ImportResult:
    """Convert every directory with a ``task.yaml`` at or below ``source`` to ``dest/<slug>``."""
    result = ImportResult()
    places = [source] if (source / "task.yaml").is_file() else sorted(p.parent for p in source.glob("**/task.yaml"))
    if not places:
        result.rejected.append(Rejected(path=printable(source), code="not_a_task", why="there is no task.yaml"))
    for place in walk(places):
        path = printable(place)
        try:
            spec, files, warnings = _converted(place, rule)
        except EnvsdkError as error:
            result.rejected.append(Rejected(path=path, code=error.code, why=str(error)))
            continue
        result.warnings += [LoadWarning(path=path, code=problem.code, why=str(problem)) for problem in warnings]
        result.add(path, lambda spec=spec, files=files: _write(spec, files, dest))  # type: ignore[misc]
    return result


def _write(spec: TaskSpec, files: Mapping[str, FileContent], dest: Path) -> Task:
    return dump_task(spec, files, free_place(dest, spec.slug))


def _converted(place: Path, rule: Rule) -> tuple[TaskSpec, dict[str, FileContent], list[Problem]]:
    table = _table(place)
    contents = read_contents(place)
    if "run-tests.sh" not in contents:
        raise UsageError("has no run-tests.sh", code="missing_file")
    parser = _parser(table, rule)
    _check_image(contents)
    compose = _compose(contents)
    oracle, why = _oracle(contents)
    warnings = [] if oracle else [_warning("no_oracle", why)]
    if table.get("run_tests_in_same_shell"):
        warnings.append(
            _warning("not_supported", "its tests ran in the agent's shell; here they have one of their own")
        )
    if marked := canaries(contents):
        warnings.append(canary_warning(marked))
    return _spec(place, table, compose), _files(contents, rule, parser, oracle), warnings


def _spec(place: Path, table: Mapping[str, Any], compose: Compose) -> TaskSpec:
    return TaskSpec(
        slug=slug_of(place.name),
        instruction=_instruction(table),
        agent=AgentSpec(user=compose.user or "root"),
        container=ContainerSpec(
            network="internal" if compose.services else "public",
            env=dict(compose.env),
            workdir=compose.workdir or _workdir(place) or "/app",
            limits=compose.limits,
        ),
        services=compose.services,
        verifier=VerifierSpec(mode="shared", network="public"),
        budget=Budget(
            episode_s=_seconds(table, "max_agent_timeout_sec", 360.0),
            verify_s=_seconds(table, "max_test_timeout_sec", 60.0),
        ),
        tags=tuple(tag for tag in table.get("tags") or [] if isinstance(tag, str)),
        metadata={key: table[key] for key in _METADATA if table.get(key)},
    )


def _files(
    contents: Mapping[str, FileContent], rule: Rule, parser: str, oracle: FileContent | None
) -> dict[str, FileContent]:
    files = {
        f"environment/{path}": content
        for path, content in contents.items()
        if path not in _OWN and not path.startswith("tests/")
    }
    files |= {path: content for path, content in contents.items() if path.startswith("tests/")}
    files["tests/run-tests.sh"] = contents["run-tests.sh"]
    score = _BY_STATUS
    if rule == "parser":
        call, source = _PARSERS[parser]
        score = _BY_OUTPUT.format(parser=call)
        files[f"tests/{call.split()[0]}"] = FileContent(Path(source).read_bytes())
    files["tests/test.sh"] = FileContent(_RUN.format(rule=rule, score=score).encode(), executable=True)
    return files if oracle is None else {**files, "solution/solve.sh": oracle}


def _table(place: Path) -> dict[str, Any]:
    try:
        table = yaml.safe_load((place / "task.yaml").read_bytes())
    except yaml.YAMLError as error:
        raise UsageError(f"task.yaml is not YAML: {error}", code="bad_yaml", hint=_MAPPING) from error
    if not isinstance(table, dict):
        raise UsageError("task.yaml is no mapping", code="bad_yaml", hint=_MAPPING)
    return table


def _parser(table: Mapping[str, Any], rule: Rule) -> str:
    parser = str(table.get("parser_name") or "pytest")
    if rule == "parser" and parser not in _PARSERS:
        known = " and ".join(_PARSERS)
        raise UsageError(f"its parser is {parser!r}: only those of {known} are known", code="unsupported_parser")
    if rule == "exit" and parser != "pytest":
        message = f"its parser is {parser!r}: the verdict is printed, and the status of its script says nothing of it"
        raise UsageError(message, code="unsupported_parser", hint="import it by the rule 'parser'")
    return parser


def _check_image(contents: Mapping[str, FileContent]) -> None:
    """The image must not be given what judges or solves the task, which lies in its build context there."""
    dockerfile = contents.get("Dockerfile")
    if dockerfile is None:
        return
    text = dockerfile.data.decode("utf-8", "replace").replace("\\\n", " ")
    for found in _COPY.finditer(text):
        for word in re.findall(r"[^\s\[\]\",']+", found["words"])[:-1]:
            path = word.removeprefix("./").rstrip("/")
            if path in {"solution.sh", "solution.yaml"}:
                raise UsageError(
                    f"its Dockerfile copies {path} into the agent's image",
                    code="leaks_oracle",
                    hint="take the line out of its Dockerfile",
                )
            if path.split("/")[0] == "tests" or path in _OWN:
                raise UsageError(
                    f"its Dockerfile copies {path} into the agent's image",
                    code="leaks_verifier",
                    hint="take the line out of its Dockerfile",
                )


def _compose(contents: Mapping[str, FileContent]) -> Compose:
    content = contents.get("docker-compose.yaml")
    if content is None:
        return Compose()
    text = content.data.decode("utf-8-sig", "replace")
    compose = read_compose(text, file="docker-compose.yaml", own="client", known=_KNOWN)
    if compose.problems:
        first = compose.problems[0]
        raise UsageError(str(first), code=first.code)
    return compose


def _workdir(place: Path) -> str | None:
    try:
        return workdir_of((place / "Dockerfile").read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None


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


def _oracle(contents: Mapping[str, FileContent]) -> tuple[FileContent | None, str]:
    if "solution.sh" in contents:
        return FileContent(contents["solution.sh"].data, executable=True), ""
    if "solution.yaml" not in contents:
        return None, "there is no solution"
    try:
        steps = yaml.safe_load(contents["solution.yaml"].data)
    except yaml.YAMLError:
        return None, "solution.yaml is not YAML"
    if not isinstance(steps, list):
        return None, "solution.yaml is no list of commands"
    commands = list(_plain_commands(steps))
    if not commands or len(commands) != len(steps):
        return None, "solution.yaml types into a terminal"
    return FileContent(("#!/bin/bash\n" + "\n".join(commands) + "\n").encode(), executable=True), ""


def _plain_commands(steps: Iterable[Any]) -> Iterable[str]:
    for step in steps:
        command = step.get("command") if isinstance(step, dict) else None
        if isinstance(command, str) and command.isprintable() and step.get("append_enter") is not False:
            yield command


def _warning(code: str, message: str) -> Problem:
    return Problem(code=code, message=message, severity="warning")
