"""Writing task directories: load, dump, load is the identity, and untouched files come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsdk.errors import SpecError, UsageError
from envsdk.sandboxes.base import Limits
from envsdk.spec import model
from envsdk.spec.contents import FileContent, new_directory, read_contents, write_contents
from envsdk.spec.dump import copy_task, dump_task
from envsdk.spec.load import load_task
from envsdk.spec.model import TaskSpec

CASES = Path(__file__).parents[3] / "conformance" / "cases" / "verifier_defects"
FILES = {
    "environment/Dockerfile": FileContent(b"FROM scratch\n"),
    "tests/test.sh": FileContent(b"#!/bin/sh\n", executable=True),
}
SPEC = TaskSpec(slug="t", instruction="Do it.\n", container=model.ContainerSpec())
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
SECONDS = st.floats(0.001, 1e6, allow_nan=False)
ENV = st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True), TEXT, max_size=3)

CONTAINERS = st.builds(
    model.ContainerSpec,
    image=st.none() | st.just("base:1"),
    workdir=st.just("/app") | st.just("/work dir"),
    env=ENV,
    limits=st.builds(
        Limits,
        cpus=st.none() | st.floats(0.1, 64),
        memory_mib=st.none() | st.integers(1, 10**6),
        disk_mib=st.none() | st.integers(1, 10**6),
        pids=st.none() | st.integers(1, 10**6),
    ),
    network=st.sampled_from(["none", "internal", "public"]),
    healthcheck=st.none() | st.builds(model.HealthCheck, command=TEXT, interval_s=SECONDS, retries=st.integers(1, 9)),
    mcp_servers=st.lists(st.builds(model.McpServer, name=WORDS, url=st.none() | TEXT), max_size=2).map(tuple),
)
SPECS = st.builds(
    TaskSpec,
    slug=WORDS,
    instruction=TEXT.filter(lambda text: text.strip() and "canary" not in text.lower()),
    agent=st.builds(
        model.AgentSpec,
        protocol=st.sampled_from(["shell", "command", "answer"]),
        system=TEXT,
        examples=st.lists(st.builds(model.Example, user=TEXT, assistant=TEXT), max_size=2).map(tuple),
        stop=st.lists(TEXT, max_size=2).map(tuple),
        user=st.sampled_from(["agent", "root"]),
    ),
    container=CONTAINERS,
    verifier=st.builds(
        model.VerifierSpec,
        kind=st.just("script"),
        mode=st.sampled_from(["separate", "shared"]),
        low=st.floats(-5, 0),
        high=st.floats(0.5, 5),
        pass_mark=st.none() | st.floats(0.1, 0.5),
        env=ENV,
        network=st.sampled_from(["none", "public"]),
        container=st.none() | st.builds(model.ContainerSpec, image=st.none() | st.just("judge:1"), env=ENV),
        exit_status=st.sampled_from(["native", "harbor"]),
    ),
    budget=st.builds(
        model.Budget, build_s=SECONDS, step_s=SECONDS, episode_s=SECONDS, verify_s=SECONDS, turns=st.integers(1, 99)
    ),
    artifacts=st.lists(st.from_regex(r"/app/[a-z ]{1,6}", fullmatch=True), min_size=1, max_size=3).map(tuple),
    family=WORDS | st.just(""),
    level=st.dictionaries(WORDS, st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | TEXT, max_size=3),
    seed=st.none() | st.integers(0, 2**60),
    tags=st.lists(WORDS, max_size=3).map(tuple),
    description=TEXT,
    metadata=st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True).filter(lambda key: key != "tags"),
        TEXT | st.dictionaries(WORDS, TEXT | st.just({}), max_size=2),
        max_size=2,
    ),
)


def modes(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in sorted(root.rglob("*")) if path.is_file()
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS)
def test_what_is_dumped_is_loaded(tmp_path_factory: pytest.TempPathFactory, spec: TaskSpec) -> None:
    task = dump_task(spec, FILES, tmp_path_factory.mktemp("d") / "t")
    assert task.spec == spec


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS, SPECS)
def test_any_task_can_be_edited_into_any_other(
    tmp_path_factory: pytest.TempPathFactory, first: TaskSpec, second: TaskSpec
) -> None:
    folder = tmp_path_factory.mktemp("d")
    task = dump_task(first, FILES, folder / "one")
    assert dump_task(second, read_contents(task.root), folder / "two").spec == second


@pytest.mark.parametrize("directory", sorted(p for p in CASES.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_a_harbor_task_comes_back_byte_for_byte(tmp_path: Path, directory: Path) -> None:
    task = load_task(directory)
    again = copy_task(task, tmp_path / directory.name)
    assert (again.spec, again.digests) == (task.spec, task.digests)
    assert (again.root / "task.toml").read_bytes() == (directory / "task.toml").read_bytes()


def test_an_edit_changes_only_its_own_lines(tmp_path: Path) -> None:
    task = load_task(CASES / "good-plain")
    budget = task.spec.budget.model_copy(update={"verify_s": 99.0})
    edited = dump_task(
        task.spec.model_copy(update={"budget": budget}), read_contents(task.root), tmp_path / "good-plain"
    )
    before = (task.root / "task.toml").read_text().splitlines()
    after = (edited.root / "task.toml").read_text().splitlines()
    assert [line for line in before if line not in after] == []
    assert before[0] == after[0], "the comment at the head is kept"
    assert edited.spec.budget.verify_s == 99.0
    assert edited.digests.task != task.digests.task, "our table changes what absent fields mean: they are written out"


def test_an_edit_of_our_own_file_keeps_comments_and_unknown_fields(tmp_path: Path) -> None:
    task = dump_task(SPEC, FILES, tmp_path / "one")
    text = (task.root / "task.toml").read_text() + "# mine\n"
    contents = {
        **read_contents(task.root),
        "task.toml": FileContent(text.replace("[agent]", "[agent]\nzzz = 1").encode()),
    }
    edited = dump_task(SPEC.model_copy(update={"seed": 7}), contents, tmp_path / "two")
    after = (edited.root / "task.toml").read_text()
    assert ("# mine" in after, "zzz = 1" in after, edited.spec.seed) == (True, True, 7)
    assert edited.digests.verifier == task.digests.verifier


def test_params_come_back(tmp_path: Path) -> None:
    verifier = model.VerifierSpec(kind="state", entry="tests/verifier.py::f", params={"a": [1, None, "ü"], "b": 1.5})
    spec = SPEC.model_copy(update={"verifier": verifier})
    task = dump_task(spec, {**FILES, "tests/verifier.py": FileContent(b"")}, tmp_path / "t")
    assert task.spec == spec


def test_a_text_task_has_no_container(tmp_path: Path) -> None:
    verifier = model.VerifierSpec(kind="text", entry="tests/verifier.py::f")
    spec = SPEC.model_copy(
        update={
            "verifier": verifier,
            "container": None,
            "agent": model.AgentSpec(protocol="answer"),
            "artifacts": ("/app/answer.txt",),
        }
    )
    task = dump_task(spec, {"tests/verifier.py": FileContent(b"")}, tmp_path / "t")
    assert task.spec == spec


def test_steps_come_back(tmp_path: Path) -> None:
    steps = (
        model.StepSpec(name="a", instruction="A.", min_reward={"reward": 0.5}),
        model.StepSpec(name="b", instruction="B.", verify_s=3, env={"X": "1"}),
        model.StepSpec(name="c", instruction="C.", healthcheck=model.HealthCheck(command="true", retries=7)),
    )
    spec = SPEC.model_copy(update={"instruction": "", "steps": steps, "step_reward": "final"})
    assert dump_task(spec, FILES, tmp_path / "t").spec == spec


COMPOSED = {
    **FILES,
    "task.toml": FileContent(b"[environment.healthcheck]\ncommand = 'true'\ninterval_sec = 2\nstart_period_sec = 9\n"),
    "instruction.md": FileContent(b"Do it.\n"),
    "environment/docker-compose.yaml": FileContent(b"services: {main: {environment: {A: b}}, db: {image: i}}\n"),
}


@pytest.fixture
def composed(tmp_path: Path) -> model.Task:
    write_contents(tmp_path / "composed", COMPOSED)
    return load_task(tmp_path / "composed")


def test_a_compose_task_comes_back_byte_for_byte(tmp_path: Path, composed: model.Task) -> None:
    again = copy_task(composed, tmp_path / "again")
    assert again.spec.model_copy(update={"slug": "composed"}) == composed.spec
    assert read_contents(again.root) == read_contents(composed.root)


def test_an_edit_beside_a_compose_file_leaves_its_services_there(tmp_path: Path, composed: model.Task) -> None:
    spec = composed.spec.model_copy(update={"seed": 7})
    edited = dump_task(spec, read_contents(composed.root), tmp_path / "edited")
    assert edited.spec == spec
    assert "services" not in (edited.root / "task.toml").read_text()


def test_what_a_directory_cannot_say_is_an_error(tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"container": None})
    with pytest.raises(SpecError) as caught:
        dump_task(spec, FILES, tmp_path / "t")
    assert caught.value.code == "not_representable"
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_result_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        dump_task(SPEC, {}, tmp_path / "t")
    assert {p["code"] for p in caught.value.problems} == {"missing_file"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make", [lambda p: p.write_text("x"), lambda p: (p.mkdir(), (p / "f").write_text("")), lambda p: p.symlink_to("y")]
)
def test_a_taken_destination_is_refused(tmp_path: Path, make) -> None:
    make(tmp_path / "t")
    with pytest.raises(UsageError) as caught:
        dump_task(SPEC, FILES, tmp_path / "t")
    assert caught.value.code == "destination_exists"


def test_modes_are_the_same_under_every_umask(tmp_path: Path) -> None:
    import os

    seen = []
    for number, mask in enumerate((0o000, 0o077)):
        before = os.umask(mask)
        try:
            seen.append(modes(dump_task(SPEC, FILES, tmp_path / str(number) / "t").root))
        finally:
            os.umask(before)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../b", "a//b", "", "./a"])
def test_no_path_leaves_the_task(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        write_contents(tmp_path, {path: FileContent(b"")})
    assert caught.value.code == "bad_path"


def test_contents_keep_run_bits_and_links(tmp_path: Path) -> None:
    contents = {"a": FileContent(b"\x00\xff", executable=True), "d/l": FileContent(link="../a"), "b": FileContent(b"")}
    write_contents(tmp_path, contents)
    assert read_contents(tmp_path) == contents


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with new_directory(tmp_path / "t") as draft:
            (draft / "x").write_text("")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_file_is_plain_toml_with_harbors_tables(tmp_path: Path) -> None:
    table = tomlkit.parse((dump_task(SPEC, FILES, tmp_path / "t").root / "task.toml").read_text()).unwrap()
    assert set(table) == {"schema_version", "task", "agent", "verifier", "environment", "metadata"}
    assert set(table["metadata"]) == {"envsdk"}
