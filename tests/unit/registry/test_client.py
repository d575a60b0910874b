"""The door: which registry is opened, and what opening it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envsdk import home
from envsdk.errors import UsageError
from registry.client import open_registry
from registry.local import LocalRegistry
from registry.remote import RemoteRegistry


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for name in ("ENVSDK_REGISTRY", "ENVSDK_TOKEN", "ENVSDK_BLOBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_without_a_word_it_is_the_embedded_one_in_the_data_folder():
    with open_registry() as opened:
        assert isinstance(opened, LocalRegistry)
        assert opened.url == f"sqlite:///{home.registry_path()}"
    assert home.registry_path().is_file()


def test_a_setting_names_another_and_an_argument_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVSDK_REGISTRY", f"sqlite:///{tmp_path}/by-setting.sqlite")
    with open_registry() as by_setting, open_registry(f"sqlite:///{tmp_path}/by-argument.sqlite") as by_argument:
        assert by_setting.url.endswith("by-setting.sqlite")
        assert by_argument.url.endswith("by-argument.sqlite")


@pytest.mark.parametrize(
    "url", ["http://", "https://[", "http://host:99999", "http://host:0", "http://host:x", "http://a b"]
)
def test_a_url_that_names_no_server_is_refused_at_once(url):
    with pytest.raises(UsageError) as caught:
        open_registry(url)
    assert caught.value.code == "bad_registry_url"


def test_a_server_that_is_away_is_one_error_and_no_other_line():
    line = "from registry.client import open_registry; open_registry('http://127.0.0.1:1').query('')"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert "stamina" not in done.stderr.partition("Traceback")[0]
    assert "server_unreachable" in done.stderr or "does not answer" in done.stderr


def test_the_projects_own_file_may_name_it(tmp_path):
    (tmp_path / "envsdk.toml").write_text(f'registry = "sqlite:///{tmp_path}/project.sqlite"\n')
    with open_registry() as opened:
        assert opened.url.endswith("project.sqlite")


def test_a_servers_url_is_a_remote_registry_and_asks_nothing_yet():
    with open_registry("https://registry.invalid/") as opened:
        assert isinstance(opened, RemoteRegistry)
        assert opened.url == "https://registry.invalid"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import registry.client", "sqlalchemy fastapi torch vllm httpx2 scipy"),
        ("import registry.cli", "sqlalchemy fastapi torch vllm httpx2 scipy uvicorn"),
        ("import registry.local", "fastapi torch vllm"),
        ("import registry.web.app", "torch vllm registry.calibration.measure registry.refresh.carry_out docker"),
    ],
)
def test_importing_loads_no_more_than_it_says(statement, absent):
    program = f"{statement}; import sys; print([name for name in {absent.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
