"""What only BuildKit reads is done otherwise where that comes to the same, and refused with what to write where not."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes.buildkit import classic, require_classic
from envsdk.sandboxes.context import Context, read_context
from envsdk.sandboxes.docker_build import context_archive
from envsdk.sandboxes.here_documents import plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.sh").write_text("run")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "b.txt").write_text("b")
    (tmp_path / "link").symlink_to("a.txt")
    with tarfile.open(tmp_path / "packed.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("inside"))
    return tmp_path


def context(folder: Path, *lines: str) -> Context:
    (folder / "Dockerfile").write_text("\n".join(["FROM x", *lines]))
    return read_context(folder)


def packed(folder: Path, *lines: str) -> tuple[list[str], dict[str, tuple[int, bytes]]]:
    """The lines that the engine reads after FROM, and mode and content of the files that it gets."""
    given = context(folder, *lines)
    written = plain(given.dockerfile)
    archive = context_archive(given, classic(written.text, written.files, given))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {info.name: (info.mode, tar.extractfile(info).read()) for info in tar if info.isreg()}
    return files.pop("Dockerfile")[1].decode().split("\n")[1:], files


def test_a_mode_is_given_to_a_copy_of_the_file_that_only_this_line_reads(folder: Path) -> None:
    lines, files = packed(folder, "COPY . /app/", "COPY --chown=1:1 --chmod=755 run.sh /bin/")
    assert lines == ['COPY ["context/.", "/app/"]', 'COPY --chown=1:1 [".envsdk/3/run.sh", "/bin/"]']
    assert files[".envsdk/3/run.sh"] == (0o755, b"run")
    assert files["context/run.sh"][0] == (folder / "run.sh").stat().st_mode & 0o777
    assert files["context/dir/b.txt"][1] == b"b"


def test_the_mode_of_one_copy_is_not_that_of_a_hard_link_to_the_same_file(folder: Path) -> None:
    (folder / "also.sh").hardlink_to(folder / "run.sh")
    _, files = packed(folder, "COPY --chmod=755 run.sh /bin/")
    assert files[".envsdk/2/run.sh"] == (0o755, b"run")


def test_patterns_and_files_in_folders_keep_their_names(folder: Path) -> None:
    lines, files = packed(folder, 'COPY --chmod=0600 ["*.txt", "dir/b.txt", "/x/"]')
    assert lines == ['COPY [".envsdk/2/*.txt", ".envsdk/2/dir/b.txt", "/x/"]']
    assert {name for name, (mode, _) in files.items() if mode == 0o600} == {
        ".envsdk/2/a.txt",
        ".envsdk/2/dir/b.txt",
    }


def test_a_here_document_has_its_mode_and_is_copied_with_nothing_else(folder: Path) -> None:
    lines, files = packed(folder, "COPY --chmod=700 <<go /x/", "text", "go", "COPY . /app/")
    assert lines == ['COPY [".envsdk/2/.envsdk-here/2/go", "/x/"]', "", "", 'COPY ["context/.", "/app/"]']
    assert files[".envsdk/2/.envsdk-here/2/go"] == (0o700, b"text\n")
    assert not [name for name in files if name.startswith("context/.envsdk")]


def test_links_are_left_out_and_lines_keep_their_numbers(folder: Path) -> None:
    lines, _ = packed(folder, "COPY --link --chown=1 \\", "  a.txt /x", "COPY --link --from=y /a /b", "RUN true")
    assert [line.split() for line in lines] == [
        ["COPY", "--chown=1", "a.txt", "/x"],
        [],
        ["COPY", "--from=y", "/a", "/b"],
        ["RUN", "true"],
    ]


def test_a_dockerfile_without_any_of_it_stays_as_it_is(folder: Path) -> None:
    given = ["COPY  a.txt \\", "   /x", "ADD https://example.org/x /y", 'RUN ["--mount"]', "RUN test --mount=x"]
    lines, files = packed(folder, *given)
    assert lines == given
    assert "a.txt" in files


def test_what_is_downloaded_is_not_looked_for_in_the_context(folder: Path) -> None:
    lines, _ = packed(folder, "ADD https://example.org/x /y", "COPY --chmod=755 a.txt /z")
    assert json.loads(lines[0].removeprefix("ADD ")) == ["https://example.org/x", "/y"]


@pytest.mark.parametrize(
    ("line", "what", "instead"),
    [
        ("RUN --mount=type=cache,target=/root/.cache pip install x", "RUN --mount=type=cache", "--no-cache-dir"),
        ("RUN --mount=type=bind,source=a,target=/a cat /a", "RUN --mount=type=bind", "COPY the files"),
        ("RUN --mount=target=/a cat /a", "RUN --mount=target=/a", "COPY the files"),
        ("RUN --mount=type=secret,id=x cat /run/secrets/x", "RUN --mount=type=secret", "no secret"),
        ("RUN --network=none true", "RUN --network=none", "leave it out"),
        ("run --security=insecure true", "RUN --security=insecure", "leave it out"),
        ("COPY --parents a.txt /x/", "COPY --parents", "name the target"),
        ("COPY --exclude=*.md . /x/", "COPY --exclude", ".dockerignore"),
        ("ADD --checksum=sha256:1 https://example.org/x /x", "ADD --checksum", "download it"),
        ("COPY --chmod=u+x run.sh /x", "COPY --chmod=u+x", "as a number"),
        ("COPY --chmod=755 dir /x", "COPY --chmod of the folder dir", "chmod -R"),
        ("COPY --chmod=755 . /x", "COPY --chmod of the folder .", "chmod -R"),
        ("COPY --chmod=755 link /x", "COPY --chmod of the link link", "RUN chmod"),
        ("ADD --chmod=755 packed.tar /x", "ADD --chmod of the archive packed.tar", "chmod -R"),
        ("ADD --chmod=755 https://example.org/x /x", "ADD --chmod of https://example.org/x", "RUN chmod"),
        ("COPY --chmod=755 $FILE /x", "COPY --chmod of $FILE", "name the file"),
        ("COPY --chmod=755 --from=y /a /x", "COPY --chmod of another stage", "RUN chmod 755"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_line_and_what_to_write(
    folder: Path, line: str, what: str, instead: str
) -> None:
    given = context(folder, "RUN true", line)
    with pytest.raises(SandboxError) as caught:
        require_classic(given.dockerfile, given)
    assert caught.value.code == "needs_buildkit"
    assert f"line 3: {what}" in caught.value.message
    assert instead in caught.value.hint


def test_an_open_quote_is_the_builders_to_tell(folder: Path) -> None:
    given = context(folder, 'COPY --chmod=755 "a.txt /x')
    assert classic(given.dockerfile, {}, given).own == {}
