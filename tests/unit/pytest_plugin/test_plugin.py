"""The pytest plugin: what it collects, how it is chosen, what a failure says, what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from envsdk.authoring.scaffold import scaffold

pytest_plugins = ["pytester"]

TASKS = """
from envsdk import Draw, family, task, verifier


@verifier
def is_word(answer: str, *, word: str) -> bool:
    return answer.strip() == word


@verifier
def starts_right(answer: str, *, word: str) -> bool:
    return answer.strip() == "" or word in answer


@task(verifier=is_word)
def say_hello() -> Draw:
    return Draw(instruction="Say the first word of every first program.", oracle="hello", params={"word": "hello"})


@task(verifier=starts_right)
def bad_hello() -> Draw:
    return Draw(instruction="Say it, hello.", oracle="hello", params={"word": "hello"})


@family(verifier=is_word, levels={"length": [3, 9]})
def letters(rng, *, length: int) -> Draw:
    word = "".join(rng.choices("abc", k=length))
    return Draw(instruction=f"Say {length} letters.", oracle=word, params={"word": word})
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("ENVSDK_HOME", str(pytester.path / "home"))
    pytester.makepyfile(first_tasks=TASKS)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-o asyncio_default_fixture_loop_scope=function")
    return pytester


def ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_importing_the_plugin_loads_nothing_of_envsdk() -> None:
    code = "import sys, envsdk.pytest_plugin; print([m for m in sys.modules if m.startswith('envsdk.') and m != 'envsdk.pytest_plugin'])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_run_without_tasks_loads_no_item_and_prints_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_nothing():\n    assert 'envsdk.pytest_items' not in sys.modules")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert not any("verifiers" in line for line in result.outlines)


def test_decorated_tasks_give_one_item_a_check_sorted_by_slug(project: pytest.Pytester) -> None:
    found = ids(project.runpytest_inprocess("--collect-only", "-q", "--task-checks", "oracle,noop"))
    assert found == [
        "first_tasks.py::say_hello::say-hello[oracle]",
        "first_tasks.py::say_hello::say-hello[noop]",
        "first_tasks.py::bad_hello::bad-hello[oracle]",
        "first_tasks.py::bad_hello::bad-hello[noop]",
        *(
            f"first_tasks.py::letters::letters-{n}-{seed}[{check}]"
            for n in (3, 9)
            for seed in (0, 1)
            for check in ("oracle", "noop")
        ),
    ]


def test_a_good_task_passes_and_a_bad_one_fails_with_evidence_fix_and_rerun_line(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--task-checks", "oracle,noop,echo", "-k", "hello")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*bad-hello[[]noop[]]: doing nothing earned the full reward",
            "*verdict: reward 1*",
            "fix: *",
            "rerun: pytest 'first_tasks.py::bad_hello::bad-hello[[]noop[]]'",
        ]
    )
    result.stdout.fnmatch_lines(["✘ bad-hello  1 passed; noop, echo", "✔ say-hello  3 passed"])
    assert not any("runtest" in line for line in result.outlines), "frames of the framework are hidden"


def test_the_summary_names_a_task_without_an_oracle_as_incomplete(project: pytest.Pytester) -> None:
    scaffold(project.path / "first", kind="text")
    shutil.rmtree(project.path / "first" / "solution")
    result = project.runpytest_inprocess("--task-checks", "oracle,noop", "first")
    result.stdout.fnmatch_lines(["○ first  1 passed; incomplete: no oracle"])


@pytest.mark.parametrize(
    ("option", "value", "setting", "hint"),
    [
        ("--task-checks", "oracle,nop", "envsdk_checks", "did you mean 'noop'"),
        ("--task-sandbox", "dokcer", "envsdk_sandbox", "did you mean 'docker'"),
    ],
)
def test_a_wrong_name_is_a_usage_error_on_the_command_line_and_in_the_ini_file(
    project: pytest.Pytester, option: str, value: str, setting: str, hint: str
) -> None:
    given = project.runpytest_subprocess(option, value)
    project.makeini(f"[pytest]\n{setting} = {value.replace(',', ' ')}\n")
    for result in (given, project.runpytest_subprocess()):
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: no *{hint}*"])
        assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_a_wrong_sandbox_of_the_environment_fails_checks_that_need_none_too_and_no_other_test(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSDK_SANDBOX", "dokcer")
    project.makepyfile(test_mine="def test_mine():\n    pass\n")
    result = project.runpytest_inprocess("--task-checks", "noop", "-k", "say-hello or mine")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["ENVSDK_SANDBOX: no sandbox back end is called 'dokcer' (did you mean 'docker'[?])"])


def test_markers_and_keywords_select(project: pytest.Pytester) -> None:
    some = project.runpytest_inprocess(
        "--collect-only", "-q", "-m", "task_check and not sandbox", "-k", "noop", "--strict-markers"
    )
    assert ids(some)
    assert all("[noop]" in line for line in ids(some))
    assert not ids(project.runpytest_inprocess("--collect-only", "-q", "-m", "sandbox"))


def test_every_option_has_its_twin_in_the_ini_file(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nenvsdk_checks = repeat\nenvsdk_repeat = 3\nenvsdk_report = out/report.json\n")
    project.runpytest_inprocess("-k", "say-hello").assert_outcomes(passed=1)
    report = json.loads((project.path / "out" / "report.json").read_text())
    assert report["ok"] is True
    assert report["tasks"][0]["slug"] == "say-hello"
    assert report["tasks"][0]["checks"][0]["why"] == "3 runs agree: reward 1"
    help_text = project.runpytest_inprocess("--help").stdout.str()
    assert all(name in help_text for name in ("--task-checks", "--envsdk-strict", "envsdk_files", "envsdk_sandbox"))


def test_a_task_directory_is_collected_and_an_invalid_one_says_all_that_is_wrong(project: pytest.Pytester) -> None:
    project.path.joinpath("first_tasks.py").unlink()
    scaffold(project.path / "first", kind="text")
    broken = project.path / "broken"
    broken.mkdir()
    (broken / "task.toml").write_text('schema_versoin = "1.4"\n')
    result = project.runpytest_inprocess("--task-checks", "oracle,noop", "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*first/task.toml::first[[]noop[]] PASSED*", "*broken*not a valid task*"])


def test_junit_carries_digests_and_outcomes(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("--task-checks", "oracle", "-k", "say-hello", "--junit-xml=junit.xml")
    cases = ET.parse(project.path / "junit.xml").iter("property")
    said = {case.get("name"): case.get("value") for case in cases}
    assert said["check"] == "oracle"
    assert said["outcome"] == "pass"
    assert len(said["verifier_digest"] or "") == 64
    assert said["oracle_reward"] == "1"


def test_workers_of_xdist_find_the_same_items_and_the_controller_hears_their_results(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-n2", "--task-checks", "oracle,noop", "--envsdk-report=r.json")
    result.assert_outcomes(passed=11, failed=1)
    report = json.loads((project.path / "r.json").read_text())
    assert len(report["tasks"]) == 6
    assert {task["verdict"] for task in report["tasks"]} == {"pass", "fail"}


def test_without_the_plugin_nothing_is_collected(project: pytest.Pytester) -> None:
    assert project.runpytest_subprocess("-p", "no:envsdk", "-q").ret == pytest.ExitCode.NO_TESTS_COLLECTED


NEEDS_BOX = """
from envsdk import ContainerSpec, Draw, Script, task

RIGHT = "#!/bin/sh\\nmkdir -p /logs/verifier\\nif [ -f /app/x ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\\n"


@task(verifier=Script(RIGHT), container=ContainerSpec(), artifacts=["/app/x"])
def boxed() -> Draw:
    return Draw(instruction="Make /app/x.", oracle="touch /app/x")
"""


def test_without_a_sandbox_checks_are_skipped_loudly_and_fail_where_strict(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(first_tasks=NEEDS_BOX)
    project.makeconftest(
        "import envsdk.sandboxes, envsdk.pytest_session as s\n"
        "from envsdk.errors import PrerequisiteError\n"
        "def none(name=None):\n    raise PrerequisiteError('no sandbox here', hint='start one')\n"
        "s.open_provider = none\n"
    )
    loose = project.runpytest_inprocess("--task-checks", "noop", "-rs")
    loose.assert_outcomes(skipped=1)
    loose.stdout.fnmatch_lines(["*no sandbox here (start one)*"])
    strict = project.runpytest_inprocess("--task-checks", "noop", "--envsdk-strict")
    strict.assert_outcomes(failed=1)


NO_IMAGE = """
import envsdk.pytest_session as s
from envsdk.errors import SandboxError


class Imageless:
    name = "imageless"

    async def ensure_image(self, environment, image, **rest):
        raise SandboxError("the Dockerfile does not build: no such\\n  package", code=CODE, hint="read the log")

    async def close(self):
        pass

s.open_provider = lambda name=None: Imageless()
"""


@pytest.mark.parametrize("code", ["build_failed", "dockerfile_invalid", "needs_buildkit"])
def test_a_dockerfile_that_does_not_build_fails_once_a_task_and_the_summary_says_why_once(
    project: pytest.Pytester, code: str
) -> None:
    project.makepyfile(first_tasks=NEEDS_BOX)
    project.makeconftest(f"CODE = {code!r}\n{NO_IMAGE}")
    result = project.runpytest_inprocess("--task-checks", "oracle,noop,repeat", "-q")
    result.assert_outcomes(failed=1, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["[?] boxed[[]oracle[]]: the Dockerfile does not build: no such"])
    summary = result.outlines[result.outlines.index("? boxed  0 passed; oracle, noop, repeat") :]
    reason = "    ? oracle, noop, repeat: the Dockerfile does not build: no such package (read the log)"
    assert summary[1] == reason
    assert summary.count(reason) == 1


@pytest.mark.parametrize("code", ["image_not_found", "build_timeout", "sandbox_lost", "dockerfile_unsupported"])
def test_an_image_that_is_missing_for_the_machines_sake_is_undecided_and_said(
    project: pytest.Pytester, code: str
) -> None:
    project.makepyfile(first_tasks=NEEDS_BOX)
    project.makeconftest(f"CODE = {code!r}\n{NO_IMAGE}")
    result = project.runpytest_inprocess("--task-checks", "oracle,noop", "-q")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["    [?] oracle, noop: the Dockerfile does not build*"])


def test_ordinary_tests_can_ask_a_verifier(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_mine="""
from pathlib import Path
from envsdk.authoring.find import find_tasks


def test_verdicts(run_verifier, tmp_path):
    tasks = {task.slug: task for task in find_tasks(Path("first_tasks.py"), tmp_path)}
    assert run_verifier(tasks["say-hello"], answer="hello").reward == 1.0
    assert run_verifier(tasks["say-hello"].root, answer=b"bye").reward == 0.0


def test_difference(run_verifier, tmp_path):
    task = find_tasks(Path("first_tasks.py"), tmp_path)[0]
    assert run_verifier(task, answer="hello").facts == 1 or task == task.model_copy(update={"oracle": "other"})
"""
    )
    result = project.runpytest_inprocess("test_mine.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*two records of Task differ in 1 fields*", "*oracle: *!= 'other'*"])


TWO_STEPS = """
from envsdk import Draw, Step, task, verifier


@verifier
def same(answer: str, *, expected: str) -> bool:
    return answer.strip() == expected


@task(verifier=same)
def twice() -> Draw:
    steps = [Step(name=n, instruction="Count.", oracle=n, params={"expected": n if n == "1" else "x"}) for n in "12"]
    return Draw(steps=steps)
"""


def test_each_step_of_a_task_is_asked_and_the_failing_one_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(steps_tasks=TWO_STEPS)
    result = pytester.runpytest_inprocess("--task-checks", "oracle,noop", "--junit-xml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*twice*oracle*step 2: the oracle does not pass: reward 0*"])
    cases = ET.parse(pytester.path / "junit.xml").iter("property")
    said = {case.get("name"): case.get("value") for case in cases}
    assert (said["1_oracle_reward"], said["2_oracle_reward"]) == ("1", "0")


def test_the_first_run_in_a_folder_without_settings_opens_without_a_warning(tmp_path) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1 passed" in done.stdout
    assert "Warning" not in done.stdout + done.stderr
