import platform
from pathlib import Path

import pytest

from envsdk.errors import PrerequisiteError
from envsdk.sandboxes import program

SHIPPED = program.SOURCE_DIR / "helper-x86_64"


def test_the_shipped_helper_was_built_from_these_sources() -> None:
    note = dict(line.split(" ", 1) for line in SHIPPED.with_suffix(".built").read_text().splitlines())
    assert note["source"] == program.source_digest(), "run python -m envsdk.sandboxes.program"


def test_the_same_compiler_builds_the_same_bytes(tmp_path: Path) -> None:
    note = dict(line.split(" ", 1) for line in SHIPPED.with_suffix(".built").read_text().splitlines())
    if platform.machine() != "x86_64" or note["compiler"] != program.compiler_version():
        pytest.skip("another compiler makes other bytes; the test above holds the sources")
    program.build(tmp_path / "helper")
    assert (tmp_path / "helper").read_bytes() == SHIPPED.read_bytes()


def test_the_shipped_helper_is_small_and_needs_no_loader() -> None:
    content = SHIPPED.read_bytes()
    assert content[:4] == b"\x7fELF"
    assert len(content) < 32 << 10
    assert b"ld-linux" not in content


def test_a_machine_without_a_shipped_helper_and_a_compiler_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program.shutil, "which", lambda _name: None)
    with pytest.raises(PrerequisiteError) as caught:
        program.build(tmp_path / "helper")
    assert caught.value.code == "no_helper"
    assert "gcc" in caught.value.hint


def test_a_failed_build_leaves_nothing_and_shows_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'error: no such header' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(program.shutil, "which", lambda _name: str(compiler))
    with pytest.raises(PrerequisiteError, match="no such header"):
        program.build(tmp_path / "out" / "helper")
    assert list((tmp_path / "out").iterdir()) == []
