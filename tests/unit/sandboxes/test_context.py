from pathlib import Path

import pytest

from envsdk.sandboxes.context import read_context


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text("FROM a\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a")
    (tmp_path / "src" / "b.pyc").write_text("b")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("src/a.py")
    return tmp_path


def test_every_file_takes_part(folder: Path) -> None:
    assert read_context(folder).files == ("Dockerfile", "empty", "link", "src/a.py", "src/b.pyc")


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("*.pyc", ("src/b.pyc", "src/a.py")),
        ("**/*.pyc", ("src/a.py",)),
        ("src", ()),
        ("src\n!src/a.py", ("src/a.py",)),
        ("# src\n\n", ("src/b.pyc", "src/a.py")),
        ("Dockerfile", ("src/b.pyc", "src/a.py")),
    ],
)
def test_ignored_files_are_left_out(folder: Path, patterns: str, left: tuple[str, ...]) -> None:
    (folder / ".dockerignore").write_text(patterns)
    files = read_context(folder).files
    assert {name for name in files if name.startswith("src/")} == set(left)
    assert "Dockerfile" in files


def test_equal_folders_have_equal_digests_whatever_their_times(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in read_context(folder).files:
        source, target = folder / name, other / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.is_dir():
            target.mkdir()
        else:
            target.write_bytes(source.read_bytes())
    assert read_context(other).digest == read_context(folder).digest


def test_bytes_names_links_and_executable_bits_change_the_digest(folder: Path) -> None:
    seen = {read_context(folder).digest}
    (folder / "src" / "a.py").write_text("b")
    seen.add(read_context(folder).digest)
    (folder / "src" / "a.py").chmod(0o755)
    seen.add(read_context(folder).digest)
    (folder / "src" / "a.py").rename(folder / "src" / "c.py")
    seen.add(read_context(folder).digest)
    (folder / "link").unlink()
    (folder / "link").symlink_to("src/c.py")
    seen.add(read_context(folder).digest)
    assert len(seen) == 5


def test_a_folder_without_a_dockerfile_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_context(tmp_path)
