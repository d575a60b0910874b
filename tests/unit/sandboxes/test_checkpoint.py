"""The probe of process checkpoints: what it says of an engine that keeps its word, and of one that does not."""

import io
import tarfile
from dataclasses import dataclass, field
from typing import Any

import pytest

from envsdk.sandboxes import checkpoint


@dataclass
class Answer:
    ok: bool
    text: str = ""


@dataclass
class PlayedEngine:
    """Counts one further at each look while its container runs; ``goes_on``: also from where a checkpoint was."""

    goes_on: bool = True
    refuses: str = ""
    base_url: str = "http://engine"
    api_version: str = "1.41"
    count: int = 0
    runs: bool = False
    calls: list[str] = field(default_factory=list)

    def create_host_config(self, **_: Any) -> dict[str, str]:
        return {}

    def create_container(self, image: str, command: list[str], **_: Any) -> dict[str, str]:
        self.calls.append(f"create {image}")
        return {"Id": "c1"}

    def start(self, container: str) -> None:
        self.runs = True

    def post(self, url: str, **options: Any) -> Answer:
        self.calls.append(url.rpartition("/")[2])
        if self.refuses:
            return Answer(ok=False, text=self.refuses)
        self.runs = url.endswith("/start")
        if self.runs and not self.goes_on:
            self.count = 0
        return Answer(ok=True)

    def inspect_container(self, container: str) -> dict[str, Any]:
        return {"State": {"Running": self.runs}}

    def get_archive(self, container: str, path: str) -> tuple[list[bytes], None]:
        self.count += self.runs
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            content = f"{self.count + (5 if self.goes_on or not self.runs else 0)}\n".encode()
            info = tarfile.TarInfo("count")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        return [archive.getvalue()], None

    def remove_container(self, container: str, **_: Any) -> None:
        self.calls.append("remove")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "COUNT_S", 0.0)


def test_a_count_that_goes_on_is_what_a_checkpoint_promises() -> None:
    engine = PlayedEngine()
    assert checkpoint.restored(engine, "image") == ""
    assert engine.calls == ["create image", "checkpoints", "start", "remove"]


def test_a_restore_that_begins_anew_is_none() -> None:
    assert "the count stood at" in checkpoint.restored(PlayedEngine(goes_on=False), "image")


def test_a_refused_checkpoint_is_told_in_the_engines_words_and_leaves_no_container() -> None:
    engine = PlayedEngine(refuses="criu failed: type DUMP errno 0")
    with pytest.raises(OSError, match="type DUMP errno 0"):
        checkpoint.restored(engine, "image")
    assert engine.calls[-1] == "remove"


def test_what_was_not_asked_is_not_claimed() -> None:
    row = checkpoint.not_asked()
    assert (row.state, "not probed" in row.detail) == ("absent", True)


def test_a_machine_without_criu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint.shutil, "which", lambda _name: None)
    assert checkpoint.probe("image").detail == "criu is not installed"


def test_a_criu_that_does_not_fit_the_kernel_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    criu = tmp_path / "criu"
    criu.write_text("#!/bin/sh\necho 'Could not initialize kernel features' >&2; exit 1\n")
    criu.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert checkpoint.probe("image").detail == "criu check: Could not initialize kernel features"
