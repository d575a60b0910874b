"""Reading task directories: what they mean, and everything that is wrong with them at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envsdk.errors import SpecError
from envsdk.sandboxes.base import Limits
from envsdk.spec.load import find_task_directories, load_task, load_tasks, load_with_warnings
from envsdk.spec.model import ContainerSpec, HealthCheck, ServiceSpec

CASES = Path(__file__).parents[3] / "conformance" / "cases" / "verifier_defects"


def make(root: Path, toml: str = 'schema_version = "1.4"\n', **files: str | bytes) -> Path:
    """A small valid task; ``files`` are added or replaced, ``__`` standing for ``/`` and ``_dot_`` for ``.``."""
    contents: dict[str, str | bytes] = {
        "task.toml": toml,
        "instruction.md": "Write 42 to /app/answer.txt.\n",
        "environment/Dockerfile": "FROM scratch\nWORKDIR /work\n",
        "tests/test.sh": "#!/bin/sh\n",
        "solution/solve.sh": "echo 42 > /app/answer.txt\n",
    }
    contents |= {name.replace("__", "/").replace("_dot_", "."): data for name, data in files.items()}
    for name, data in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return root


def problems(root: Path) -> list[dict[str, str]]:
    with pytest.raises(SpecError) as caught:
        load_task(root)
    return list(caught.value.problems)


def codes(root: Path) -> list[str]:
    return [problem["code"] for problem in problems(root)]


@pytest.mark.parametrize("directory", sorted(p for p in CASES.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_every_miniature_task_loads(directory: Path) -> None:
    task = load_task(directory)
    assert (task.slug, task.oracle, task.spec.verifier.mode) == (directory.name, "solution/solve.sh", "shared")


def test_a_harbor_file_means_what_harbor_says(tmp_path: Path) -> None:
    spec = load_task(make(tmp_path / "t")).spec
    assert (spec.container.network, spec.agent.user, spec.verifier.mode, spec.agent.protocol) == (
        "public",
        "root",
        "shared",
        "shell",
    )


def test_a_file_with_our_table_is_closed_by_default(tmp_path: Path) -> None:
    spec = load_task(make(tmp_path / "t", "[metadata.envsdk]\n")).spec
    assert (spec.container.network, spec.agent.user, spec.verifier.mode) == ("none", "agent", "separate")


def test_workdir_is_the_dockerfiles_where_the_table_is_silent(tmp_path: Path) -> None:
    assert load_task(make(tmp_path / "a")).spec.container.workdir == "/work"
    assert load_task(make(tmp_path / "b", '[environment]\nworkdir = "/x"\n')).spec.container.workdir == "/x"


@pytest.mark.parametrize(
    ("line", "mib"),
    [('memory = "2G"', 2048), ('memory = "512M"', 512), ("memory_mb = 300", 300), ('memory = "1024K"', 1)],
)
def test_memory_in_every_spelling(tmp_path: Path, line: str, mib: int) -> None:
    assert load_task(make(tmp_path / "t", f"[environment]\n{line}\n")).spec.container.limits.memory_mib == mib


@pytest.mark.parametrize(
    ("toml", "network"),
    [
        ("[environment]\nallow_internet = false\n", "none"),
        ("[environment]\nallow_internet = true\n", "public"),
        ('[environment]\nnetwork_mode = "no-network"\n', "none"),
        ('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.example"]\n', "allowlist"),
        ('[environment]\nnetwork_mode = "public"\n[agent]\nnetwork_mode = "no-network"\n', "none"),
        ('[metadata.envsdk.container]\nnetwork = "internal"\n', "internal"),
    ],
)
def test_network_in_every_spelling(tmp_path: Path, toml: str, network: str) -> None:
    assert load_task(make(tmp_path / "t", toml)).spec.container.network == network


def test_steps_are_read_with_their_instructions(tmp_path: Path) -> None:
    toml = '[[steps]]\nname = "one"\nmin_reward = 0.5\n[[steps]]\nname = "two"\nmin_reward = {speed = 1}\n'
    root = make(
        tmp_path / "t",
        toml,
        steps__one__instruction_dot_md="First.",
        steps__two__instruction_dot_md="Second.",
        steps__two__tests__test_dot_sh="#!/bin/sh\n",
    )
    (root / "instruction.md").unlink()
    spec = load_task(root).spec
    assert [(s.name, s.instruction, s.min_reward) for s in spec.steps] == [
        ("one", "First.", {"reward": 0.5}),
        ("two", "Second.", {"speed": 1.0}),
    ]


def test_a_separate_verifier_follows_from_its_own_environment(tmp_path: Path) -> None:
    assert load_task(make(tmp_path / "a", "[verifier.environment]\ncpus = 1\n")).spec.verifier.mode == "separate"
    assert load_task(make(tmp_path / "b", tests__Dockerfile="FROM scratch\n")).spec.verifier.mode == "separate"
    explicit = '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1\n'
    assert load_task(make(tmp_path / "c", explicit)).spec.verifier.mode == "shared"


def test_a_verifiers_own_environment_is_its_box(tmp_path: Path) -> None:
    table = "[verifier.environment]\ndocker_image = 'judge:1'\nmemory = '1G'\nenv = {A = 'b'}\n"
    found = load_task(make(tmp_path / "t", table)).spec.verifier.container
    assert found == ContainerSpec(image="judge:1", workdir="/work", env={"A": "b"}, limits=Limits(memory_mib=1024))


COMPOSE = """
services:
  main:
    environment: {HOST: db, LEVEL: low}
    working_dir: /srv
  db:
    build: ./db
    expose: ["5432"]
"""


def test_a_compose_file_beside_the_dockerfile_adds_services_on_a_network_of_their_own(tmp_path: Path) -> None:
    toml = "[environment]\nenv = {LEVEL = 'high'}\n"
    files = {"environment__docker-compose_dot_yaml": COMPOSE, "environment__db__Dockerfile": "FROM scratch\n"}
    spec = load_task(make(tmp_path / "t", toml, **files)).spec
    assert spec.services == (ServiceSpec(name="db", build="db", port=5432),)
    assert (spec.container.network, spec.container.env) == ("internal", {"HOST": "db", "LEVEL": "high"})
    assert spec.container.workdir == "/srv"


@pytest.mark.parametrize(
    ("toml", "warned"),
    [
        ("", True),
        ("[environment]\nnetwork_mode = 'public'\n", True),
        ("[environment]\nallow_internet = false\n", False),
        ("[agent]\nnetwork_mode = 'no-network'\n", False),
        ("[metadata.envsdk.container]\nnetwork = 'internal'\n", False),
    ],
)
def test_a_way_out_beside_services_is_missed_aloud_where_the_task_counts_on_one(
    tmp_path: Path, toml: str, warned: bool
) -> None:
    files = {"environment__docker-compose_dot_yaml": COMPOSE, "environment__db__Dockerfile": "FROM scratch\n"}
    found = load_with_warnings(make(tmp_path / "t", toml, **files))[1]
    assert [(p.code, p.field) for p in found] == [("not_supported", "environment.network_mode")] * warned


def test_a_service_without_its_dockerfile_is_a_missing_file(tmp_path: Path) -> None:
    root = make(tmp_path / "t", **{"environment__docker-compose_dot_yaml": COMPOSE})
    assert [(p["code"], p["file"]) for p in problems(root)] == [("missing_file", "environment/db/Dockerfile")]


def test_what_compose_asks_and_cannot_have_keeps_the_task_out(tmp_path: Path) -> None:
    root = make(tmp_path / "t", **{"environment__docker-compose_dot_yaml": "services: {main: {privileged: true}}\n"})
    assert [(p["code"], p["field"]) for p in problems(root)] == [("unsupported_compose", "services.main.privileged")]


@pytest.mark.parametrize(
    ("text", "found"), [("services: {main: {}}\n", []), ("services: {db: {image: i}}\n", ["unsupported_compose"])]
)
def test_a_verifier_has_no_services_beside_it(tmp_path: Path, text: str, found: list[str]) -> None:
    root = make(tmp_path / "t", **{"tests__docker-compose_dot_yaml": text})
    assert (codes(root) if found else load_with_warnings(root)[1]) == found


def test_a_service_starts_after_one_that_stands_before_it(tmp_path: Path) -> None:
    toml = "[metadata.envsdk.container]\nnetwork = 'internal'\n"
    toml += "".join(
        f"[[metadata.envsdk.services]]\nname = '{n}'\nimage = 'i'\nafter = ['{a}']\n" for n, a in ("ab", "ba")
    )
    assert [p["field"] for p in problems(make(tmp_path / "t", toml))] == ["metadata.envsdk.services.after"]


def test_a_steps_verifier_has_variables_and_its_box_a_check_of_their_own(tmp_path: Path) -> None:
    toml = "[[steps]]\nname = 'a'\n[steps.verifier.env]\nX = '1'\n"
    toml += "[steps.healthcheck]\ncommand = 'true'\ninterval_sec = 2\nretries = 3\nstart_period_sec = 5\n"
    step = load_task(make(tmp_path / "t", toml, steps__a__instruction_dot_md="Go.")).spec.steps[0]
    assert step.env == {"X": "1"}
    assert step.healthcheck == HealthCheck(command="true", interval_s=2.0, retries=6)


def test_artifacts_are_texts_or_tables(tmp_path: Path) -> None:
    toml = 'artifacts = ["/app/a", {source = "/app/b", destination = "b"}]\n'
    assert load_task(make(tmp_path / "t", toml)).spec.artifacts == ("/app/a", "/app/b")


def test_an_image_needs_no_environment_folder(tmp_path: Path) -> None:
    root = make(tmp_path / "t", '[environment]\ndocker_image = "x:1"\n')
    (root / "environment" / "Dockerfile").unlink()
    assert load_task(root).spec.container.image == "x:1"


def test_tables_of_others_are_kept_apart(tmp_path: Path) -> None:
    spec = load_task(
        make(tmp_path / "t", '[metadata]\ndifficulty = "hard"\ntags = ["a"]\n[task]\ndescription = "d"\n')
    ).spec
    assert (spec.metadata, spec.tags, spec.description) == ({"difficulty": "hard", "tags": ["a"]}, ("a",), "d")


def test_the_canary_is_not_shown_to_the_model(tmp_path: Path) -> None:
    text = "<!-- benchmark data, canary GUID 1234 -->\nDo it.\n"
    task, warnings = load_with_warnings(make(tmp_path / "t", instruction_dot_md=text))
    assert (task.spec.instruction, [w.code for w in warnings]) == ("Do it.\n", ["canary"])


@pytest.mark.parametrize(
    ("toml", "code", "field", "hint"),
    [
        ("[agnet]\ntimeout_sec = 1\n", "unknown_field", "agnet", "agent"),
        ("[agent]\ntimeout_secs = 1\n", "unknown_field", "agent.timeout_secs", "timeout_sec"),
        ("[environment]\nmemroy_mb = 1\n", "unknown_field", "environment.memroy_mb", "memory_mb"),
        (
            "[[environment.mcp_servers]]\nname = 'x'\ntransprot = 'sse'\n",
            "unknown_field",
            "environment.mcp_servers[0].transprot",
            "transport",
        ),
        ("[verifier]\nenvironment_mode = 'seperate'\n", "bad_value", "verifier.environment_mode", "separate"),
        ("[agent]\ntimeout_sec = '30'\n", "wrong_type", "agent.timeout_sec", ""),
        ("[agent]\ntimeout_sec = -1\n", "out_of_range", "agent.timeout_sec", ""),
        ("[agent]\ntimeout_sec = inf\n", "out_of_range", "agent.timeout_sec", ""),
        ("[metadata.envsdk]\nslugg = 'x'\n", "unknown_field", "metadata.envsdk.slugg", "slug"),
        ("[metadata.envsdk.agent]\nprotocoll = 'x'\n", "unknown_field", "metadata.envsdk.agent.protocoll", "protocol"),
        ("[metadata.envsdk.agent]\nzzz = 1\n", "unknown_field", "metadata.envsdk.agent.zzz", "examples, protocol"),
        ("[metadata.envsdk]\ntags = ['a']\n", "unknown_field", "metadata.envsdk.tags", "[task]"),
        (
            "[[metadata.envsdk.services]]\nname = 'api'\nhealthcheck = {comand = 'x'}\n",
            "unknown_field",
            "metadata.envsdk.services[0].healthcheck.comand",
            "command",
        ),
        ("[metadata.envsdk.verifier]\nlow = 1\nhigh = 0\n", "bad_value", "metadata.envsdk.verifier", ""),
        ("[metadata.envsdk.verifier]\npass_mark = 3\n", "bad_value", "metadata.envsdk.verifier.pass_mark", ""),
        ("[environment]\nmemory = 'lots'\n", "bad_value", "environment.memory", "2G"),
        ("[environment]\nmemory = '2G'\nmemory_mb = 1\n", "conflicting_fields", "environment.memory", "memory_mb"),
        (
            "[environment]\nallow_internet = true\nnetwork_mode = 'no-network'\n",
            "conflicting_fields",
            "environment.allow_internet",
            "",
        ),
        ("[environment]\nos = 'windows'\n", "unsupported_os", "environment.os", ""),
        ("[metadata]\nx = nan\n", "out_of_range", "metadata.x", ""),
        ("schema_version = '1.9'\n[new]\n", "future_schema", "schema_version", "upgrade"),
        ("schema_version = 'two'\n", "bad_value", "schema_version", "1.4"),
        ("[[metadata.envsdk.services]]\nname = 'Api'\n", "bad_value", "metadata.envsdk.services[0].name", ""),
        ("[metadata.envsdk]\nseed = 'x'\n", "wrong_type", "metadata.envsdk.seed", ""),
    ],
)
def test_a_wrong_value_is_found_with_its_field(tmp_path: Path, toml: str, code: str, field: str, hint: str) -> None:
    found = problems(make(tmp_path / "t", toml))
    match = [p for p in found if p["code"] == code and p["field"] == field]
    assert match, found
    assert hint in match[0]["hint"]


def test_a_field_that_resembles_none_is_a_warning(tmp_path: Path) -> None:
    _, warnings = load_with_warnings(make(tmp_path / "t", "[agent]\nzzz = 1\n"))
    assert [(w.code, w.field, w.severity) for w in warnings] == [("unknown_field", "agent.zzz", "warning")]


@pytest.mark.parametrize(
    ("toml", "files", "place"),
    [
        ("[environment]\ngpus = 1\n", {}, "environment.gpus"),
        ("[[verifier.collect]]\ncommand = 'x'\n", {}, "verifier.collect"),
        ("[verifier.environment]\ngpus = 1\n", {}, "verifier.environment.gpus"),
        ("artifacts = [{source = '/a', destination = '/b'}]\n", {}, "artifacts[0].destination"),
        (
            "[environment]\nallow_internet = true\n",
            {"environment__docker-compose_dot_yaml": "services: {db: {image: i}}\n"},
            "environment.network_mode",
        ),
    ],
)
def test_what_nothing_here_provides_is_said(tmp_path: Path, toml: str, files: dict[str, str], place: str) -> None:
    _, warnings = load_with_warnings(make(tmp_path / "t", toml, **files))
    assert [(w.code, w.field or w.file) for w in warnings] == [("not_supported", place)]


def test_every_problem_is_reported_together(tmp_path: Path) -> None:
    root = make(tmp_path / "t", "[agnet]\n[verifier]\nenvironment_mode = 1\ntimeout_sec = 0\n", instruction_dot_md="")
    (root / "bad").symlink_to("/etc")
    (root / "tests" / "test.sh").unlink()
    found = codes(root)
    assert {"symlink_escape", "unknown_field", "bad_value", "out_of_range"} <= set(found)


def test_missing_files_are_reported_together(tmp_path: Path) -> None:
    root = make(tmp_path / "t")
    for name in ("instruction.md", "environment/Dockerfile", "tests/test.sh"):
        (root / name).unlink()
    assert [(p["code"], p["file"]) for p in problems(root)] == [
        ("missing_file", "instruction.md"),
        ("missing_file", "tests/test.sh"),
        ("missing_file", "environment/Dockerfile"),
    ]


@pytest.mark.parametrize("data", [b"", b"   \n", b"<!-- canary 1 -->\n"])
def test_an_empty_instruction_is_refused(tmp_path: Path, data: bytes) -> None:
    assert codes(make(tmp_path / "t", instruction_dot_md=data)) == ["empty_instruction"]


def test_a_python_verifier_needs_its_file(tmp_path: Path) -> None:
    toml = "[metadata.envsdk.verifier]\nkind = 'state'\nentry = 'tests/verifier.py::judge'\n"
    assert [(p["code"], p["file"]) for p in problems(make(tmp_path / "a", toml))] == [
        ("missing_file", "tests/verifier.py")
    ]
    wrong = toml.replace("::judge", "")
    assert [p["field"] for p in problems(make(tmp_path / "b", wrong))] == ["metadata.envsdk.verifier.entry"]


def test_a_text_verifier_needs_an_answer(tmp_path: Path) -> None:
    toml = "[metadata.envsdk.verifier]\nkind = 'text'\nentry = 'tests/verifier.py::judge'\n"
    root = make(tmp_path / "t", toml, tests__verifier_dot_py="")
    assert [p["field"] for p in problems(root)] == ["metadata.envsdk.agent.protocol"]


def test_params_must_be_an_object(tmp_path: Path) -> None:
    toml = "[metadata.envsdk.verifier]\nkind = 'state'\nentry = 'tests/verifier.py::judge'\n"
    files = {"tests__verifier_dot_py": ""}
    assert codes(make(tmp_path / "a", toml, tests__params_dot_json="[1]", **files)) == ["wrong_type"]
    assert codes(make(tmp_path / "b", toml, tests__params_dot_json="{", **files)) == ["bad_json"]


def test_bytes_that_are_no_text_are_one_finding(tmp_path: Path) -> None:
    assert codes(make(tmp_path / "a", instruction_dot_md=b"\xff\xfe")) == ["not_utf8"]
    assert codes(make(tmp_path / "b", task_dot_toml=b"\xff")) == ["not_utf8"]


def test_a_byte_order_mark_is_an_error_in_toml_and_a_warning_in_a_dockerfile(tmp_path: Path) -> None:
    assert codes(make(tmp_path / "a", task_dot_toml=b"\xef\xbb\xbfversion = '1.0'\n")) == ["byte_order_mark"]
    _, warnings = load_with_warnings(make(tmp_path / "b", environment__Dockerfile=b"\xef\xbb\xbfFROM scratch\n"))
    assert [(w.code, w.file) for w in warnings] == [("byte_order_mark", "environment/Dockerfile")]


def test_toml_that_is_none_is_shown_with_its_line(tmp_path: Path) -> None:
    found = problems(make(tmp_path / "t", 'a = 1\nb = "x\n'))
    assert (found[0]["code"], found[0]["value"]) == ("bad_toml", 'b = "x')


@pytest.mark.parametrize("name", ["a b", "sträße.v2", "x", "…odd (1)", "-dash"])
def test_odd_directory_names_are_fine(tmp_path: Path, name: str) -> None:
    assert load_task(make(tmp_path / name)).slug


def test_a_directory_name_that_is_no_utf8_is_reported_printably(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))
    (root / "x").mkdir(parents=True)
    result = load_tasks([root])
    assert [r.path.encode() for r in result.rejected] == [f"{tmp_path}/a\\xff/x".encode()]


def test_a_huge_sparse_file_is_one_finding_and_not_read(tmp_path: Path) -> None:
    root = make(tmp_path / "t")
    with (root / "environment" / "disk").open("wb") as stream:
        stream.truncate(5 << 30)
    found = problems(root)
    assert [(p["code"], p["file"]) for p in found] == [("tree_too_large", "environment/disk")]


def test_bad_directories_leave_the_others_unharmed(tmp_path: Path) -> None:
    make(tmp_path / "good-1")
    make(tmp_path / "good-2")
    make(tmp_path / "typo", "[agnet]\n")
    loop = make(tmp_path / "loop")
    (loop / "a").symlink_to("b")
    (loop / "b").symlink_to("a")
    (make(tmp_path / "out") / "l").symlink_to("../../x")
    os.mkfifo(make(tmp_path / "pipe") / "p")
    (tmp_path / "empty").mkdir()
    make(tmp_path / "future", "version = '9.0'\n")
    result = load_tasks([tmp_path])
    assert [t.slug for t in result.tasks] == ["good-1", "good-2"]
    assert {Path(r.path).name: r.code for r in result.rejected} == {
        "typo": "unknown_field",
        "loop": "link_cycle",
        "out": "symlink_escape",
        "pipe": "special_file",
        "empty": "not_a_task",
        "future": "future_schema",
    }
    assert all(r.why for r in result.rejected)


def test_a_path_that_is_no_directory_is_rejected_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = load_tasks([tmp_path / "none", tmp_path / "file"])
    assert [r.code for r in result.rejected] == ["no_such_path", "not_a_task"]


def test_tasks_are_found_below_and_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path / "deep" / "er" / "task")
    make(tmp_path / ".hidden")
    (tmp_path / "again").symlink_to(tmp_path / "deep")
    assert list(find_task_directories(tmp_path)) == [tmp_path / "deep" / "er" / "task"]


def test_a_task_inside_a_task_is_not_one_of_its_own(tmp_path: Path) -> None:
    root = make(tmp_path / "t")
    make(root / "environment" / "inner")
    assert list(find_task_directories(tmp_path)) == [root]


def test_version_control_is_no_part_of_a_task(tmp_path: Path) -> None:
    root = make(tmp_path / "t")
    before = load_task(root).digests
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("x")
    assert load_task(root).digests == before


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("[agent]\ntimeout_sec = 30\n", "[agent]\ntimeout_sec = 60\n", {"task"}),
        ("[verifier]\ntimeout_sec = 30\n", "[verifier]\ntimeout_sec = 60\n", {"verifier"}),
        ("[task]\ndescription = 'a'\n", "[task]\ndescription = 'b'\n", set()),
        ("[metadata.envsdk]\nseed = 1\n", "[metadata.envsdk]\nseed = 2\n", set()),
        ("[metadata.envsdk.agent]\nsystem = 'a'\n", "[metadata.envsdk.agent]\nsystem = 'b'\n", {"task"}),
        ("[metadata.envsdk.verifier]\nhigh = 1\n", "[metadata.envsdk.verifier]\nhigh = 2\n", {"verifier"}),
        ("[metadata]\nx = 1\n", "[metadata]\nx = 2\n", set()),
        ("", "[metadata.envsdk]\n", {"task", "verifier"}),
    ],
)
def test_a_tables_change_moves_its_own_digest(tmp_path: Path, before: str, after: str, moved: set[str]) -> None:
    first = load_task(make(tmp_path / "a" / "t", before)).digests
    second = load_task(make(tmp_path / "b" / "t", after)).digests
    assert {side for side in ("task", "verifier") if getattr(first, side) != getattr(second, side)} == moved
    assert first.package != second.package


def test_text_means_a_number_is_written_as_it_likes(tmp_path: Path) -> None:
    first = load_task(make(tmp_path / "a", "[agent]\ntimeout_sec = 30\n"))
    second = load_task(make(tmp_path / "b", "[agent]\ntimeout_sec = 30.0\n"))
    assert first.digests.task == second.digests.task


def test_the_message_lists_the_problems(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_task(make(tmp_path / "t", "[agnet]\n[verifer]\n"))
    assert "2 problems" in str(caught.value)
    assert "did you mean 'agent'?" in str(caught.value)
    assert "did you mean 'verifier'?" in str(caught.value)
