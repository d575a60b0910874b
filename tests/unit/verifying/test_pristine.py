"""The boxes of a task: which image, which network, whose folder builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsdk.errors import PrerequisiteError
from envsdk.home import BASE_IMAGE
from envsdk.spec.model import ContainerSpec, Task
from envsdk.verifying.pristine import box_spec, dockerfile_folder, image_of
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task


class Asked(FakeProvider):
    """Remembers what image was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str | None, str | None]] = []

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        self.asked.append((environment.name if environment else None, image))
        return "pinned"


def task_with(root: Path, *, image: str | None, dockerfiles: tuple[str, ...] = (), **changed: Any) -> Task:
    task = script_task(root, **changed)
    for folder in dockerfiles:
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "Dockerfile").write_text("FROM x\n")
    container = ContainerSpec(image=image, network="none")
    return task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})


@pytest.mark.parametrize(
    ("image", "dockerfiles", "role", "asked"),
    [
        ("named", (), "agent", (None, "named")),
        ("named", ("environment",), "agent", (None, "named")),
        (None, ("environment",), "agent", ("environment", None)),
        (None, (), "agent", (None, BASE_IMAGE)),
        (None, ("environment",), "verifier", ("environment", None)),
        ("named", (), "verifier", (None, "named")),
        ("named", ("tests",), "verifier", ("tests", None)),
        (None, ("environment", "tests"), "verifier", ("tests", None)),
        (None, ("environment", "tests"), "agent", ("environment", None)),
    ],
)
async def test_the_image_is_the_named_one_or_its_dockerfile_s_or_the_base(
    tmp_path: Path, image: str | None, dockerfiles: tuple[str, ...], role: Any, asked: tuple[str | None, str | None]
) -> None:
    provider = Asked()
    assert await image_of(task_with(tmp_path, image=image, dockerfiles=dockerfiles), provider, role) == "pinned"
    assert provider.asked == [asked]


def test_a_verifier_with_its_own_dockerfile_is_built_from_it(tmp_path: Path) -> None:
    task = task_with(tmp_path, image=None, dockerfiles=("environment", "tests"))
    assert dockerfile_folder(task, "verifier") == tmp_path / "tests"
    assert dockerfile_folder(task) == tmp_path / "environment"


@pytest.mark.parametrize(
    ("mode", "network", "role", "expected", "join"),
    [
        ("none", "", "agent", "none", ""),
        ("none", "net-1", "agent", "internal", "net-1"),
        ("internal", "net-1", "agent", "internal", "net-1"),
        ("internal", "", "agent", "none", ""),
        ("public", "net-1", "agent", "public", ""),
        ("none", "net-1", "verifier", "none", ""),
        ("internal", "net-1", "verifier", "internal", "net-1"),
        ("internal", "", "verifier", "none", ""),
    ],
)
def test_an_agent_joins_its_services_and_a_verifier_only_where_it_says_so(
    tmp_path: Path, mode: Any, network: str, role: Any, expected: str, join: str
) -> None:
    task = script_task(tmp_path, **({"network": mode} if role == "verifier" else {}))
    if role == "agent":
        task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": ContainerSpec(network=mode)})})
    spec = box_spec(task, "pinned", role=role, network=network)
    assert (spec.network, spec.join, spec.image) == (expected, join, "pinned")


def test_a_task_without_container_has_a_closed_box(tmp_path: Path) -> None:
    task = script_task(tmp_path)
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": None})})
    spec = box_spec(task, "pinned")
    assert (spec.network, spec.workdir, spec.user) == ("none", "/app", "agent")


class Keeping(Asked):
    """A back end that keeps what a set-up left."""

    async def prepare(self, spec: Any, script: str, *, timeout_s: float) -> str:
        return f"{spec.image}+{script} in {timeout_s:.0f} s"


@pytest.mark.parametrize(
    ("dockerfiles", "role", "image"),
    [
        ((), "agent", "pinned+make in 60 s"),
        (("environment",), "verifier", "pinned+make in 60 s"),
        (("tests",), "agent", "pinned+make in 60 s"),
        (("tests",), "verifier", "pinned"),
    ],
)
async def test_the_pristine_image_is_set_up_but_the_verifiers_own(
    tmp_path: Path, dockerfiles: tuple[str, ...], role: Any, image: str
) -> None:
    task = task_with(tmp_path, image=None, dockerfiles=dockerfiles)
    container = ContainerSpec(setup="make")
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    assert await image_of(task, Keeping(), role) == image


async def test_a_back_end_that_cannot_keep_a_set_up_says_so_before_it_starts_anything(tmp_path: Path) -> None:
    task = task_with(tmp_path, image="named")
    container = ContainerSpec(setup="make")
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    with pytest.raises(PrerequisiteError) as caught:
        await image_of(task, Asked())
    assert caught.value.code == "setup_unsupported"
