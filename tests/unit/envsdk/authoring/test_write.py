"""A decorated task becomes a directory that is a Harbor task."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk import Draw, Step, find_tasks, task, verifier
from envsdk.authoring.declare import Script, declarations
from envsdk.authoring.write import write_task
from envsdk.errors import UsageError
from envsdk.spec.model import Task

SOURCE = Path(__file__).with_name("authored_sample.py")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    return {t.slug: t for t in find_tasks(SOURCE, tmp_path_factory.mktemp("tasks"))}


@verifier
def takes_expected(answer: str, *, expected: str) -> float:
    return float(answer == expected)


def declaration(function, **options):
    task(**options)(function)
    return next(d for d in declarations() if d.function is function)


def test_everything_declared_is_written(tasks: dict[str, Task]) -> None:
    assert sorted(tasks) == ["letters-1-false-0", "letters-5-true-0", "make-x", "say-hello", "scripted"]


def test_a_text_task_says_what_it_is(tasks: dict[str, Task]) -> None:
    spec = tasks["say-hello"].spec
    assert (spec.agent.protocol, spec.container, spec.artifacts) == ("answer", None, ("/app/answer.txt",))
    assert (spec.verifier.kind, spec.verifier.entry, spec.verifier.params) == (
        "text",
        "tests/verifier.py::is_word",
        {"expected": "hello"},
    )
    assert (spec.description, spec.tags, spec.family) == ("Say hello.", ("greeting",), "")


def test_the_verifier_is_its_modules_source(tasks: dict[str, Task]) -> None:
    assert (tasks["say-hello"].root / "tests" / "verifier.py").read_bytes() == SOURCE.read_bytes()


def test_oracle_and_wrong_answers_lie_where_neither_agent_nor_verifier_looks(tasks: dict[str, Task]) -> None:
    root = tasks["say-hello"].root
    assert (root / "solution" / "answer.txt").read_text() == "hello"
    assert {p.relative_to(root).as_posix(): p.read_text() for p in (root / "mutants").rglob("*.txt")} == {
        "mutants/wrong/01.txt": "bye",
        "mutants/wrong/02.txt": "",
        "mutants/right/padded.txt": " hello ",
    }


def test_a_state_task_carries_its_range_and_files(tasks: dict[str, Task]) -> None:
    found = tasks["make-x"]
    assert (found.spec.verifier.low, found.spec.verifier.high, found.spec.verifier.success_at) == (-1.0, 2.0, 1.0)
    files = found.root / "environment" / "files"
    assert ((files / "run.sh").stat().st_mode & 0o100, (files / "a b.bin").read_bytes()) == (0o100, b"\x00")
    assert "COPY files/ /app/" in (found.root / "environment" / "Dockerfile").read_text()


def test_a_scripted_task_keeps_its_script_and_files(tasks: dict[str, Task]) -> None:
    root = tasks["scripted"].root
    assert (root / "tests" / "test.sh").read_text().startswith("#!/bin/sh\necho 1")
    assert (root / "tests" / "data.txt").read_text() == "1"
    assert (root / "solution" / "solve.sh").read_text() == "#!/bin/bash\n: 9\n"
    assert tasks["scripted"].spec.verifier.mode == "shared"


def test_the_oracle_of_an_answer_writes_it_in_a_box(tasks: dict[str, Task], tmp_path: Path) -> None:
    script = (tasks["say-hello"].root / "solution" / "solve.sh").read_text().replace("/app/", f"{tmp_path}/")
    (tmp_path / "solve.sh").write_text(script)
    (tmp_path / "answer.txt").write_text("to be overwritten")
    solution = tasks["say-hello"].root / "solution"
    subprocess.run(
        ["sh", "-c", script.replace('"$(dirname "$0")/answer.txt"', str(solution / "answer.txt"))], check=True
    )
    assert (tmp_path / "answer.txt").read_text() == "hello"


def test_the_oracle_of_a_command_stores_what_it_prints(tasks: dict[str, Task]) -> None:
    solution = tasks["letters-1-false-0"].root / "solution"
    assert (solution / "answer.txt").read_text().startswith("echo ")
    assert "sh -c" in (solution / "solve.sh").read_text()


def test_a_task_without_an_oracle_is_refused(tmp_path: Path) -> None:
    def no_oracle() -> Draw:
        return Draw(instruction="x")

    with pytest.raises(UsageError) as caught:
        write_task(declaration(no_oracle, verifier=Script("")), no_oracle(), tmp_path / "t", slug="t")
    assert caught.value.code == "no_oracle"


@pytest.mark.parametrize("params", [{}, {"expect": "x"}, {"expected": "x", "more": 1}])
def test_params_must_fit_the_verifier(tmp_path: Path, params: dict[str, object]) -> None:
    def misfit() -> Draw:
        return Draw(instruction="x", oracle="x", params=params)

    with pytest.raises(UsageError) as caught:
        write_task(declaration(misfit, verifier=takes_expected), misfit(), tmp_path / "t", slug="t")
    assert (caught.value.code, list(tmp_path.iterdir())) == ("params_mismatch", [])


def test_a_verifier_without_a_file_is_refused(tmp_path: Path) -> None:
    space: dict[str, object] = {"__name__": "nowhere"}
    exec("def judge(answer): return 1.0", space)
    judge = verifier(space["judge"])

    def typed_in() -> Draw:
        return Draw(instruction="x", oracle="x")

    with pytest.raises(UsageError) as caught:
        write_task(declaration(typed_in, verifier=judge), typed_in(), tmp_path / "t", slug="t")
    assert caught.value.code == "no_source"


def test_a_module_that_raises_is_reported_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    for _ in range(2):
        with pytest.raises(UsageError, match="ZeroDivisionError") as caught:
            find_tasks(path, tmp_path / "out")
        assert caught.value.code == "import_failed"
    path.write_text("x = 1\n")
    assert find_tasks(path, tmp_path / "out") == []


def run_in_box(root: Path, box: Path) -> subprocess.CompletedProcess[str]:
    """Run a task's runner with an interpreter that has no envsdk, its absolute paths re-pointed."""
    script = (root / "tests" / "run_verifier.py").read_text()
    assert script == (Path(sys.modules["envsdk.authoring.write"].__file__).with_name("runner.py")).read_text()
    tests = box / "tests"
    shutil.copytree(root / "tests", tests)
    text = script.replace('Path("/logs/', f'Path("{box}/logs/').replace('Path("/")', f'Path("{box}")')
    (tests / "run_verifier.py").write_text(text)
    function, kind, answer = (root / "tests" / "test.sh").read_text().split()[-3:]
    command = [sys.executable, "-I", "-S", "-B", str(tests / "run_verifier.py"), function, kind, f"{box}{answer}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("answer", "reward"), [("hello\n", 1.0), ("bye", 0.0), (None, 0.0)])
def test_the_script_judges_an_answer_without_envsdk(
    tasks: dict[str, Task], tmp_path: Path, answer: str | None, reward: float
) -> None:
    if answer is not None:
        (tmp_path / "app").mkdir()
        (tmp_path / "app" / "answer.txt").write_text(answer)
    done = run_in_box(tasks["say-hello"].root, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "logs" / "verifier" / "reward.json").read_text()) == {"reward": reward}


def test_the_script_judges_an_end_state_without_envsdk(tasks: dict[str, Task], tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "x").write_text("")
    done = run_in_box(tasks["make-x"].root, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "logs" / "verifier" / "reward.json").read_text()) == {"reward": 1.0, "size": 1.0}


def test_a_verifier_that_raises_leaves_no_reward(tasks: dict[str, Task], tmp_path: Path) -> None:
    done = run_in_box(tasks["make-x"].root, tmp_path)  # lists /app, which is not there
    assert (done.returncode, (tmp_path / "logs").exists()) == (1, False)


GRADED = r"""
from envsdk import Draw, Script, Step, task, verifier
from envsdk.graders import command, file, numeric


@verifier
def near(answer, *, truth, **options):
    return numeric(answer, truth, **options) == "correct"


@task(verifier=near)
def third():
    return Draw(instruction="1/3?", params={"truth": "0.333", "abs_tol": 0.001}, oracle="0.3333", wrong=["0.3"])


@verifier(kind="sandbox")
def prints(state, *, output):
    if file(state, "/app/run.sh", mode=0o755) != "correct":
        return {"reward": 0.0, "runnable": 0.0}
    return {"reward": float(command(["/app/run.sh"], output=output, user="root") == "correct"), "runnable": 1.0}


@task(verifier=prints, artifacts=["/app/run.sh"])
def script():
    return Draw(instruction="Write run.sh.", params={"output": "hi"}, oracle="echo hi")


@task(verifier=near, name="two-sums")
def sums():
    return Draw(
        steps=[
            Step(name="first", instruction="1+1?", params={"truth": "2"}, oracle="2", min_reward=1),
            Step(name="second", instruction="2+2?", params={"truth": "4"}, oracle="4", files={"a.txt": "x"}),
        ],
        step_reward="final",
    )


@task(verifier=Script("#!/bin/sh\n"), name="boxed-steps")
def boxed():
    first = Step(name="a", instruction="A", oracle="touch a", tests={"wanted": "a"}, artifacts=("/app/a",))
    return Draw(steps=[first, Step(name="b", instruction="B", oracle="touch b", min_reward={"speed": 0.5})])
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    folder = tmp_path_factory.mktemp("graded")
    (folder / "graded_tasks.py").write_text(GRADED)
    return {task.slug: task for task in find_tasks(folder / "graded_tasks.py", folder / "out")}


@pytest.mark.parametrize(("answer", "reward"), [("0.3333\n", 1.0), ("0.3", 0.0), ("a third", 0.0)])
def test_a_task_brings_the_graders_that_its_verifier_uses(
    graded: dict[str, Task], tmp_path: Path, answer: str, reward: float
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "answer.txt").write_text(answer)
    done = run_in_box(graded["third"].root, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "logs" / "verifier" / "reward.json").read_text()) == {"reward": reward}


def test_a_grader_says_the_tasks_fault_as_such_without_envsdk(graded: dict[str, Task], tmp_path: Path) -> None:
    root = shutil.copytree(graded["third"].root, tmp_path / "task")
    (root / "tests" / "params.json").write_text('{"truth": "much"}')
    done = run_in_box(root, tmp_path / "box")
    assert (done.returncode, "VerifierError" in done.stderr) == (1, True)


def test_a_task_that_uses_no_grader_brings_none(tasks: dict[str, Task]) -> None:
    assert not (tasks["say-hello"].root / "tests" / "_envsdk").exists()
    assert [p.name for p in (tasks["make-x"].root / "tests" / "_envsdk").rglob("*.py")] == ["state.py"]


@pytest.mark.parametrize(
    ("body", "mode", "rewards"),
    [("echo hi", 0o755, (1.0, 1.0)), ("echo ho", 0o755, (0.0, 1.0)), ("echo hi", 0o644, (0.0, 0.0))],
)
def test_a_sandbox_verifier_runs_what_the_agent_left(
    graded: dict[str, Task], tmp_path: Path, body: str, mode: int, rewards: tuple[float, float]
) -> None:
    task = graded["script"]
    assert (task.spec.verifier.kind, task.spec.verifier.exit_status) == ("script", "native")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "run.sh").write_text(f"#!/bin/sh\n{body}\n")
    (tmp_path / "app" / "run.sh").chmod(mode)
    root = shutil.copytree(task.root, tmp_path / "task")
    module = root / "tests" / "verifier.py"
    module.write_text(module.read_text().replace('["/app/run.sh"]', f'["{tmp_path}/app/run.sh"]'))
    done = run_in_box(root, tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "logs" / "verifier" / "reward.json").read_text())
    assert (found["reward"], found["runnable"]) == rewards


def test_steps_are_written_with_their_files_and_gates(graded: dict[str, Task]) -> None:
    task = graded["two-sums"]
    assert [(step.name, step.instruction, step.min_reward) for step in task.spec.steps] == [
        ("first", "1+1?", {"reward": 1.0}),
        ("second", "2+2?", {}),
    ]
    assert (task.spec.step_reward, task.spec.instruction) == ("final", "")
    steps = task.root / "steps"
    assert json.loads((steps / "second" / "tests" / "params.json").read_text()) == {"truth": "4"}
    assert (steps / "second" / "workdir" / "a.txt").read_text() == "x"
    assert (steps / "first" / "solution" / "answer.txt").read_text() == "2"
    assert not (task.root / "instruction.md").exists()


def test_steps_of_a_script_have_tests_gates_and_artifacts_of_their_own(graded: dict[str, Task]) -> None:
    first, second = graded["boxed-steps"].spec.steps
    assert (first.artifacts, second.min_reward) == (("/app/a",), {"speed": 0.5})
    assert (graded["boxed-steps"].root / "steps" / "a" / "tests" / "wanted").read_text() == "a"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Step(name="a", instruction="x", oracle=""), "no_oracle"),
        (Step(name="a", instruction="x", oracle="y"), "params_mismatch"),
        (Step(name="a", instruction="x", oracle="y", params={"expected": {1, 2}}), "params_mismatch"),
    ],
)
def test_a_step_that_cannot_be_judged_is_refused(tmp_path: Path, step: Step, code: str) -> None:
    def stepped() -> Draw:
        return Draw(steps=[step])

    with pytest.raises(UsageError) as caught:
        write_task(declaration(stepped, verifier=takes_expected), stepped(), tmp_path / "t", slug="t")
    assert caught.value.code == code


def test_slugs_of_a_family_tell_level_and_seed(tasks: dict[str, Task]) -> None:
    spec = tasks["letters-5-true-0"].spec
    assert (spec.family, spec.level, spec.seed) == ("letters", {"length": 5, "loud": True}, 0)


def test_writing_again_gives_the_same_digests(tasks: dict[str, Task], tmp_path: Path) -> None:
    random.seed(1)
    again = {t.slug: t.digests for t in find_tasks(SOURCE, tmp_path)}
    assert again == {slug: t.digests for slug, t in tasks.items()}
