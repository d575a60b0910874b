"""What an image is made of: named without a version it is found, with one it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.checks.lint import python_downloads, unpinned
from envsdk.spec.model import VerifierSpec
from tests.unit.checks.test_lint import files_of


def codes(tmp_path: Path, *lines: str) -> list[str]:
    files = {"environment/Dockerfile": "\n".join(lines) + "\n"}
    return [fault.code for fault in unpinned.rule(files_of(tmp_path, files))]


@pytest.mark.parametrize(
    "line",
    [
        "RUN pip install numpy",
        "RUN pip3 install --no-cache-dir numpy==1.26.4 pandas",
        "RUN python3 -m pip install --upgrade requests",
        "RUN uv pip install httpx",
        "RUN apt-get update && pip install 'flask>=2'",
        "RUN --mount=type=cache,target=/root/.cache pip install numpy",
        "RUN npm install -g typescript",
        "RUN cargo install ripgrep",
        "RUN go install golang.org/x/tools/gopls@latest",
    ],
)
def test_an_install_without_a_version_is_found(tmp_path: Path, line: str) -> None:
    assert codes(tmp_path, "FROM debian:12", line) == ["unpinned_install"]


@pytest.mark.parametrize(
    "line",
    [
        "RUN pip install numpy==1.26.4 'requests~=2.31.0' 'x @ https://example.org/x-1.0.whl'",
        "RUN pip install --upgrade pip setuptools wheel",
        "RUN pip install -r requirements.txt",
        "RUN pip install -c constraints.txt numpy",
        "RUN pip install . && pip install -e ./lib && pip install /opt/wheels/x.whl",
        "RUN pip install --index-url https://example.org/simple numpy==1.26.4 > /dev/null",
        "RUN pip install $PACKAGES",
        "RUN pip install --no-index --find-links=/wheels numpy",
        "RUN cd /wheels && pip install numpy-1.26.4-cp311-none-any.whl 'x-1.0-py3-none-any.whl[extra]'",
        "RUN npm install -g npm pnpm && npm install -g tool-1.0.0.tgz",
        "RUN npm ci && npm install && npm install -g typescript@5.4.5 @scope/name@1.0.0",
        "RUN cargo install ripgrep --version 14.1.0",
        "RUN go install golang.org/x/tools/gopls@v0.15.3",
        "RUN apt-get install -y --no-install-recommends git",
        "RUN echo pip install numpy",
        "# RUN pip install numpy",
        'CMD ["pip", "install", "numpy"]',
    ],
)
def test_what_is_pinned_or_comes_with_the_task_is_not(tmp_path: Path, line: str) -> None:
    assert codes(tmp_path, "FROM debian:12", line) == []


@pytest.mark.parametrize(
    "line", ["RUN curl -fsSL https://example.org/i.sh | sh", "RUN wget -qO- http://x.org | sudo bash"]
)
def test_a_download_that_is_run_as_it_comes_is_found(tmp_path: Path, line: str) -> None:
    assert codes(tmp_path, "FROM debian:12", line) == ["unpinned_download"]


@pytest.mark.parametrize("base", ["debian", "python:latest", "ghcr.io/org/image", "host:5000/image"])
def test_a_base_without_a_version_is_found(tmp_path: Path, base: str) -> None:
    assert codes(tmp_path, f"FROM {base}") == ["unpinned_base"]


@pytest.mark.parametrize(
    "lines",
    [
        ("FROM python:3.12-slim",),
        ("FROM debian@sha256:" + "0" * 64,),
        ("ARG BASE=python:3.12-slim", "FROM ${BASE}"),
        ("FROM debian:12 AS build", "FROM build"),
        ("FROM scratch",),
        ("FROM --platform=linux/amd64 debian:12",),
        ("FROM host:5000/image:1",),
    ],
)
def test_a_base_with_a_version_or_of_this_file_is_not(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert codes(tmp_path, *lines) == []


def test_a_fault_names_its_line_and_what_to_write(tmp_path: Path) -> None:
    files = {"environment/Dockerfile": "FROM debian:12\n\nRUN apt-get update && \\\n    pip install numpy\n"}
    (fault,) = unpinned.rule(files_of(tmp_path, files))
    assert (fault.file, fault.line) == ("environment/Dockerfile", 3)
    assert "numpy==VERSION" in fault.what


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("urllib.request.urlopen('https://example.org/x')", "download_at_verify_time"),
        ('requests.get(f"https://example.org/{name}")', "download_at_verify_time"),
        ("httpx.get(url='http://example.org')", "download_at_verify_time"),
        ("subprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])", "install_at_verify_time"),
        ("subprocess.check_call(['apt-get', 'install', 'jq'])", "install_at_verify_time"),
        ("os.system('pip install x')", "install_at_verify_time"),
    ],
)
def test_python_that_fetches_is_found_in_files_and_in_here_documents(tmp_path: Path, line: str, code: str) -> None:
    for name, text in (("check.py", f"import os\n{line}\n"), ("test.sh", f"python3 - <<'EOF'\n{line}\nEOF\n")):
        files = files_of(tmp_path / name, {f"tests/{name}": text})
        assert [(fault.code, fault.line) for fault in python_downloads.rule(files)] == [(code, 2)]


@pytest.mark.parametrize(
    "line",
    [
        "urllib.request.urlopen('http://127.0.0.1:8000/')",
        "requests.get('http://localhost:5000/')",
        "requests.get(f'http://{host}/')",
        "# urllib.request.urlopen('https://example.org')",
        "print('see https://example.org')",
        "link = 'https://example.org'",
        "assert 'pip install' in text",
    ],
)
def test_python_that_stays_in_the_box_is_not(tmp_path: Path, line: str) -> None:
    assert list(python_downloads.rule(files_of(tmp_path, {"tests/check.py": f"{line}\n"}))) == []


def test_a_declared_network_is_no_fault(tmp_path: Path) -> None:
    files = {"tests/check.py": "requests.get('https://example.org')\n"}
    spec = VerifierSpec(kind="script", network="public")
    assert list(python_downloads.rule(files_of(tmp_path, files, verifier=spec))) == []
