"""Compose files: what becomes a service, what is said of the agent's own, and what is refused with its place."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes.base import Limits
from envsdk.spec.compose import Compose, read_compose
from envsdk.spec.model import HealthCheck, ServiceSpec

FILE = "environment/docker-compose.yaml"


def read(text: str, **options: Any) -> Compose:
    return read_compose(textwrap.dedent(text), file=FILE, own="main", **options)


def service(**fields: Any) -> ServiceSpec:
    """The one service ``s`` that these fields of a compose file make."""
    found = read_compose(yaml.safe_dump({"services": {"s": {"image": "i", **fields}}}), file=FILE, own="main")
    assert found.problems == ()
    return found.services[0]


def refused(**fields: Any) -> list[str]:
    """Places that are refused in a service ``s`` with these fields."""
    found = read_compose(yaml.safe_dump({"services": {"s": {"image": "i", **fields}}}), file=FILE, own="main")
    assert {problem.code for problem in found.problems} <= {"unsupported_compose"}
    return [problem.field for problem in found.problems]


def test_a_service_in_harbors_usual_shape() -> None:
    found = read("""
        services:
          main:
            depends_on:
              api: {condition: service_healthy}
          api:
            build: {context: ./api}
            expose: ["5000"]
            environment: {MODE: test, DEBUG: true, PORT: 5000}
            healthcheck:
              test: ["CMD", "python3", "-c", "print('up')"]
              interval: 2s
              timeout: 500ms
              retries: 15
              start_period: 5s
        """)
    assert found.problems == ()
    assert found.services == (
        ServiceSpec(
            name="api",
            build="api",
            env={"MODE": "test", "DEBUG": "true", "PORT": "5000"},
            port=5000,
            healthcheck=HealthCheck(
                command="""python3 -c 'print('"'"'up'"'"')'""", interval_s=2.0, timeout_s=0.5, retries=18
            ),
        ),
    )


@pytest.mark.parametrize("build", [".", {"context": "."}, {"context": ".", "dockerfile": "Dockerfile"}])
def test_a_build_may_start_where_the_file_lies(build: Any) -> None:
    assert service(build=build).build == "."


@pytest.mark.parametrize(
    ("fields", "command", "args"),
    [
        ({}, None, None),
        ({"command": "redis-server --port 1"}, None, ("redis-server", "--port", "1")),
        ({"command": ["sh", "-c", "echo $$HOME"]}, None, ("sh", "-c", "echo $HOME")),
        ({"entrypoint": "/run.sh", "command": ["a b"]}, "/run.sh 'a b'", None),
        ({"entrypoint": ["python", "-m", "x"]}, "python -m x", None),
    ],
)
def test_words_go_to_the_images_entry_point_unless_it_is_replaced(
    fields: dict[str, Any], command: str | None, args: tuple[str, ...] | None
) -> None:
    assert (service(**fields).command, service(**fields).args) == (command, args)


@pytest.mark.parametrize(
    ("fields", "port"),
    [
        ({"ports": ["8080:80"]}, 80),
        ({"ports": ["127.0.0.1:8080:80/tcp"]}, 80),
        ({"ports": [{"target": 81, "published": 1}]}, 81),
        ({"expose": [82], "ports": ["1:2"]}, 82),
        ({"ports": ["${PORT}"]}, None),
    ],
)
def test_the_port_is_the_one_inside(fields: dict[str, Any], port: int | None) -> None:
    assert service(**fields).port == port


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({"deploy": {"resources": {"limits": {"cpus": "0.5", "memory": "256M"}}}}, Limits(cpus=0.5, memory_mib=256)),
        ({"mem_limit": "1g", "cpus": 2, "pids_limit": 50}, Limits(cpus=2, memory_mib=1024, pids=50)),
        ({"mem_limit": 1048576}, Limits(memory_mib=1)),
        ({"pids_limit": -1}, Limits()),
    ],
)
def test_bounds_in_both_spellings(fields: dict[str, Any], limits: Limits) -> None:
    assert service(**fields).limits == limits


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (["A=1", "B=x=y", "C"], {"A": "1", "B": "x=y", "C": "${C}"}),
        ({"A": 1, "B": None}, {"A": "1", "B": "${B}"}),
        ({"A": "${X:-y}", "B": "${X}", "C": "$X", "D": "$$X"}, {"A": "${X:-y}", "B": "${X}", "C": "${X}", "D": "$X"}),
        ({"T": "${TEST_DIR}"}, {"T": "/tests"}),
    ],
)
def test_variables_are_kept_to_be_resolved_where_the_task_runs(environment: Any, expected: dict[str, str]) -> None:
    assert service(environment=environment).env == expected


@pytest.mark.parametrize("test", [["NONE"], None])
def test_a_check_that_is_switched_off_is_none(test: Any) -> None:
    assert service(healthcheck={"test": test, "disable": test is None}).healthcheck is None


def test_a_service_that_another_waits_for_comes_first() -> None:
    found = read("""
        services:
          web: {image: w, depends_on: [db, cache]}
          cache: {image: c}
          db: {image: d, depends_on: {cache: {condition: service_healthy}}}
        """)
    assert [(one.name, one.after) for one in found.services] == [
        ("cache", ()),
        ("db", ("cache",)),
        ("web", ("db", "cache")),
    ]


def test_what_the_file_says_of_the_agents_own_box() -> None:
    found = read("""
        services:
          main:
            build: {context: "${CONTEXT_DIR}"}
            image: ${MAIN_IMAGE_NAME}
            command: ["sh", "-c", "sleep infinity"]
            user: "1000:1000"
            working_dir: /work
            environment: ["HOST=db"]
            volumes: ["${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}"]
            deploy: {resources: {limits: {cpus: "${CPUS}", memory: 512m}}}
        """)
    assert found.problems == ()
    assert (found.user, found.workdir, found.env, found.limits) == (
        "1000:1000",
        "/work",
        {"HOST": "db"},
        Limits(memory_mib=512),
    )


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"volumes": ["./data:/data"]}, "services.s.volumes"),
        ({"volumes": ["/var/run/docker.sock:/var/run/docker.sock"]}, "services.s.volumes"),
        ({"volumes": [{"type": "bind", "source": "~/x", "target": "/x"}]}, "services.s.volumes"),
        ({"volumes": ["${DIR:-./x}:/x"]}, "services.s.volumes"),
        ({"privileged": True}, "services.s.privileged"),
        ({"network_mode": "host"}, "services.s.network_mode"),
        ({"cap_add": ["NET_ADMIN"]}, "services.s.cap_add"),
        ({"env_file": ".env"}, "services.s.env_file"),
        ({"user": "postgres"}, "services.s.user"),
        ({"platform": "linux/arm64"}, "services.s.platform"),
        ({"security_opt": ["seccomp:unconfined"]}, "services.s.security_opt"),
        ({"build": {"context": ".", "target": "x"}}, "services.s.build.target"),
        ({"build": {"context": ".", "args": {"A": 1}}}, "services.s.build.args"),
        ({"build": "../outside"}, "services.s.build.context"),
        ({"build": "https://host/x.git"}, "services.s.build.context"),
        ({"image": "${IMAGE}"}, "services.s.image"),
        ({"image": None}, "services.s"),
        ({"healthcheck": {"interval": "2s"}}, "services.s.healthcheck.test"),
        ({"healthcheck": {"test": "x", "interval": "soon"}}, "services.s.healthcheck"),
        ({"mem_limit": "much"}, "services.s.deploy"),
        ({"depends_on": {"main": {"condition": "service_completed_successfully"}}}, "services.s.depends_on"),
        ({"depends_on": ["nobody"]}, "services.s.depends_on"),
        ({"depends_on": ["s"]}, "services"),
        ({"networks": {"default": {"aliases": ["other"]}}}, "services.s.networks.default"),
        ({"networks": ["back"]}, "networks"),
        ({"environment": "A=1"}, "services.s.environment"),
        ({"ports": ["1:99999"]}, "services.s.port"),
    ],
)
def test_what_cannot_be_had_is_refused_with_its_place(fields: dict[str, Any], place: str) -> None:
    assert refused(**fields) == [place]


@pytest.mark.parametrize(
    "fields",
    [
        {"restart": "always", "container_name": "c", "labels": {"a": "b"}, "tty": True, "x-note": 1},
        {"volumes": ["data:/var/lib/data"]},
        {"volumes": ["/var/lib/data"]},
        {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"], "platform": "linux/amd64"},
        {"networks": ["default"], "logging": {"driver": "none"}},
        {"privileged": False},
    ],
)
def test_what_changes_nothing_is_passed_over(fields: dict[str, Any]) -> None:
    assert refused(**fields) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("services: {a: {image: i, volumes: ['d:/x']}, b: {image: i, volumes: ['d:/y']}}", "volumes.d"),
        ("services: {a: {image: i}}\nvolumes: {d: {external: true}}", "volumes.d"),
        ("services: {a: {image: i}}\nsecrets: {s: {file: x}}", "secrets"),
        ("services: {a: {image: i}, main: {networks: [a, b]}}", "networks"),
        ("services: {main: {command: nginx}}", "services.main.command"),
        ("services: {main: {build: ./elsewhere}}", "services.main.build"),
        ("services: {a: [1]}", "services.a"),
        ("services: {Bad_Name: {image: i}}", "services.Bad_Name.name"),
        ("services: {a: {image: i, depends_on: [b]}, b: {image: i, depends_on: [a]}}", "services"),
    ],
)
def test_what_goes_wrong_between_services(text: str, place: str) -> None:
    assert [problem.field for problem in read(text).problems] == [place]


@pytest.mark.parametrize("text", ["[", "", "- 1", "services: 3", "a: !!python/object:x {}", "? : :\n\t"])
def test_what_is_no_compose_file_is_one_problem(text: str) -> None:
    assert [problem.code for problem in read(text).problems] == ["bad_yaml"]


def test_a_problem_says_what_to_do() -> None:
    (problem,) = read("services: {a: {image: i, privileged: true}}").problems
    assert str(problem) == (
        "environment/docker-compose.yaml: services.a.privileged: 'privileged' is not provided"
        " (take it out, or declare the service in [metadata.envsdk])"
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = ("build", "command", "depends_on", "deploy", "environment", "expose", "healthcheck", "image", "networks")
FIELDS += ("platform", "ports", "security_opt", "volumes", "entrypoint", "user", "working_dir", "mem_limit", "cpus")


@given(
    st.dictionaries(st.sampled_from(["main", "a", "b"]), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
)
def test_no_file_breaks_the_reader(rows: dict[str, Any]) -> None:
    found = read_compose(yaml.safe_dump({"services": rows}), file=FILE, own="main")
    assert {problem.code for problem in found.problems} <= {"unsupported_compose"}
    assert {one.name for one in found.services} <= rows.keys()
