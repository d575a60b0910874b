"""SWE-style rows in: a repository in an image, an issue, a patch as the oracle, tests that must pass after it.

Read are rows of SWE-bench and of what was made after it: ``instance_id``, ``problem_statement``, ``image_name`` (or
``docker_image``), ``patch``, ``test_patch``, ``FAIL_TO_PASS``, ``PASS_TO_PASS`` (lists, or JSON texts of lists), and
where given ``test_cmd`` and ``log_parser``, at the top or in ``install_config``. The verifier puts the test patch's
files in place, runs the command, and wants each named test as PASSED in pytest's ``-rA`` rows. Only pytest's log is
known; rows with another parser are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsdk.errors import UsageError
from envsdk.formats import pytest_names
from envsdk.formats.dataset import read_rows
from envsdk.formats.result import ImportResult, Walk, free_place, quietly
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.load import Rejected
from envsdk.spec.meaning import slug_of
from envsdk.spec.model import AgentSpec, ContainerSpec, Task, TaskSpec, VerifierSpec

TEST_COMMAND = "python -m pytest -rA"
_TEST = """#!/bin/bash
# Tests as they must be, whatever the agent made of them; then the command; then each named test must have passed.
mkdir -p /logs/verifier
cd {workdir} || exit 1
git apply --numstat /tests/test.patch | cut -f 3- | while IFS= read -r file; do
    rm -rf "$file"
    git checkout -q HEAD -- "$file" 2> /dev/null
done
git apply --whitespace=nowarn /tests/test.patch || exit 1
{command} > /logs/verifier/test-stdout.txt 2>&1
cat /logs/verifier/test-stdout.txt
python3 -I -B /tests/pytest_names.py /tests/names.json < /logs/verifier/test-stdout.txt > /logs/verifier/reward.draft &&
    mv /logs/verifier/reward.draft /logs/verifier/reward.txt
"""
_SOLVE = """#!/bin/bash
cd {workdir} && git apply --whitespace=nowarn "$(dirname "$0")/fix.patch"
"""


def import_swe(source: Path, dest: Path, *, workdir: str = "/testbed", walk: Walk = quietly) -> ImportResult:
    """Make one task of each row of ``source`` (as `envsdk.formats.dataset.read_rows`); ``workdir`` is the repository's.

    Raises:
        UsageError: the source cannot be read.
        PrerequisiteError: a saved folder needs `datasets`.
    """
    result = ImportResult()
    for number, row in enumerate(walk(read_rows(source))):
        path = f"{source}:{number + 1}"
        if isinstance(row, UsageError):
            result.rejected.append(Rejected(path=path, code=row.code, why=row.message))
            continue
        result.add(path, lambda row=row: _task(row, dest, workdir))  # type: ignore[misc]
    return result


def _task(row: Mapping[str, Any], dest: Path, workdir: str) -> Task:
    config = row.get("install_config")
    config = config if isinstance(config, dict) else {}
    parser = str(row.get("log_parser") or config.get("log_parser") or "pytest")
    if "pytest" not in parser:
        raise UsageError(f"its log parser is {parser!r}: only pytest's is known", code="unsupported_parser")
    image = row.get("image_name") or row.get("docker_image")
    if not image:
        raise UsageError("names no image", code="missing_column", hint="add image_name")
    slug = slug_of(_text(row, "instance_id"))
    names = {"fail_to_pass": _names(row, "FAIL_TO_PASS"), "pass_to_pass": _names(row, "PASS_TO_PASS")}
    if not names["fail_to_pass"]:
        raise UsageError(
            "no test fails before the fix", code="no_tests", hint="FAIL_TO_PASS names at least one", where=slug
        )
    command = row.get("test_cmd") or config.get("test_cmd") or TEST_COMMAND
    spec = TaskSpec(
        slug=slug,
        instruction=_text(row, "problem_statement"),
        agent=AgentSpec(user="root"),
        container=ContainerSpec(image=str(image), workdir=workdir),
        verifier=VerifierSpec(mode="shared"),
        tags=("swe", *([str(row["repo"])] if row.get("repo") else [])),
        metadata={key: str(row[key]) for key in ("repo", "base_commit", "version") if row.get(key)},
    )
    files = {
        "tests/test.sh": FileContent(_TEST.format(workdir=workdir, command=_joined(command)).encode(), executable=True),
        "tests/test.patch": FileContent(_text(row, "test_patch").encode()),
        "tests/names.json": FileContent((json.dumps(names, indent=1) + "\n").encode()),
        "tests/pytest_names.py": FileContent(Path(pytest_names.__file__).read_bytes()),
        "solution/solve.sh": FileContent(_SOLVE.format(workdir=workdir).encode(), executable=True),
        "solution/fix.patch": FileContent(_text(row, "patch").encode()),
    }
    return dump_task(spec, files, free_place(dest, slug))


def _joined(command: Any) -> str:
    return " && ".join(map(str, command)) if isinstance(command, list) else str(command)


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"no text in column {key!r}", code="missing_column")
    return value


def _names(row: Mapping[str, Any], key: str) -> list[str]:
    value = row.get(key) or []
    try:
        names = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{key} is no list of names: {error}", code="bad_value") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{key} is no list of names", code="bad_value")
    return names
