"""The probes see what is there, name what is not with a way to get it, and change nothing."""

import sqlite3
from pathlib import Path

import pytest

from envsdk import prerequisites
from envsdk.prerequisites import Finding


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ENVSDK_REGISTRY", raising=False)
    monkeypatch.chdir(tmp_path)


def _as_if(state: str) -> Finding:
    return Finding(name="engine", state=state, detail="seen", fix="" if state == "ok" else "mend it")  # type: ignore[arg-type]


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("docker", "bubblewrap", "expected"),
    [("ok", "ok", "ok"), ("ok", "absent", "ok"), ("absent", "ok", "ok"), ("absent", "absent", "missing")],
)
def test_one_working_sandbox_is_enough(
    monkeypatch: pytest.MonkeyPatch, docker: str, bubblewrap: str, expected: str
) -> None:
    monkeypatch.setattr(prerequisites, "docker_engine", lambda: _as_if(docker))
    monkeypatch.setattr(prerequisites, "bubblewrap_works", lambda: _as_if(bubblewrap))
    monkeypatch.setattr(prerequisites, "generation", lambda: _as_if("ok"))
    findings = {finding.name: finding for finding in prerequisites.examine()}
    assert findings["sandbox"].state == expected


def test_what_is_looked_at_is_told_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    seen: dict[str, str] = {}
    probes = ("docker_engine", "bubblewrap_works", "python", "data_folder", "disk", "generation", "models", "registry")
    for name in (*probes, "chromium"):

        def probe(name: str = name) -> Finding:
            seen[name] = begun[-1]
            return _as_if("ok")

        monkeypatch.setattr(prerequisites, name, probe)
    prerequisites.examine(begun=begun.append)
    assert list(seen.values()) == begun
    assert len(set(begun)) == len(probes) + 1
    assert "vllm" in seen["generation"]


def test_a_client_without_an_engine_is_not_an_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _program(tmp_path / "docker", "echo cannot connect to the Docker daemon >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = prerequisites.docker_engine()
    assert found.state == "absent"
    assert "no engine answers" in found.detail
    assert "start" in found.fix


def test_an_engine_without_the_base_image_says_how_to_make_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _program(tmp_path / "docker", '[ "$1" = version ] && echo 20.10 || { echo No such image >&2; exit 1; }')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = prerequisites.docker_engine()
    assert found.state == "absent"
    assert "No such image" in found.detail
    assert "base_image" in found.fix


def test_bubblewrap_without_a_file_tree_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites.shutil, "which", lambda name: f"/usr/bin/{name}")
    found = prerequisites.bubblewrap_works()
    assert found.state == "absent"
    assert "base_image" in found.fix


def test_bubblewrap_that_the_kernel_refuses_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _program(tmp_path / "bwrap", "echo no permission to create a namespace >&2; exit 1")
    (prerequisites.rootfs_dir() / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = prerequisites.bubblewrap_works()
    assert (found.state, found.detail) == ("absent", "no permission to create a namespace")


def test_a_disk_with_too_little_room_says_how_much_to_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "LEAST_DISK_GIB", 1e9)
    found = prerequisites.disk()
    assert found.state == "missing"
    assert "GiB, or point ENVSDK_HOME" in found.fix


def test_a_data_folder_that_cannot_be_written_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites.os, "access", lambda *_: False)
    assert prerequisites.data_folder().state == "missing"


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites.importlib.util, "find_spec", lambda name: None if name == "vllm" else object())
    found = prerequisites.generation()
    assert (found.state, found.detail) == ("absent", "not installed: vllm")


def test_an_installed_package_that_breaks_at_import_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites.importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setattr(
        prerequisites, "_run", lambda *_args, **_options: (False, "operator torchvision::nms does not exist")
    )
    found = prerequisites.generation()
    assert found.state == "absent"
    assert "torchvision" in found.fix


def test_a_converted_model_is_listed_and_half_made_ones_are_not(tmp_path: Path) -> None:
    for name in ("small", ".making-small-x"):
        folder = prerequisites.models_dir() / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    assert prerequisites.models().detail.split(" in ")[0] == "small"


def test_a_registry_that_is_not_made_yet_is_no_fault() -> None:
    assert prerequisites.registry().state == "ok"


def test_looking_at_a_registry_does_not_make_it() -> None:
    prerequisites.registry()
    assert not prerequisites.registry_path().exists()


def test_a_file_that_is_no_database_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"not a database at all" * 100)
    monkeypatch.setenv("ENVSDK_REGISTRY", f"sqlite:///{broken}")
    assert prerequisites.registry().state == "missing"


def test_the_registry_that_the_project_names_is_the_one_looked_at(tmp_path: Path) -> None:
    (tmp_path / "envsdk.toml").write_text('registry = "sqlite:///elsewhere.sqlite"\n')
    assert "elsewhere.sqlite" in prerequisites.registry().detail


def test_a_good_database_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "good.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table t (x)")
    connection.commit()
    connection.close()
    monkeypatch.setenv("ENVSDK_REGISTRY", f"sqlite:///{path}")
    assert prerequisites.registry().state == "ok"


@pytest.mark.parametrize("url", ["ftp://host/x", "nonsense", "http://", "postgresql://user:secret@127.0.0.1:1/x"])
def test_a_registry_url_that_leads_nowhere_is_missing_with_a_fix(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_REGISTRY", url)
    found = prerequisites.registry()
    assert found.state == "missing"
    assert found.fix


def test_a_password_in_a_url_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_REGISTRY", "postgresql+psycopg://user:secret@127.0.0.1:1/x")
    found = prerequisites.registry()
    assert "secret" not in found.detail + found.fix
