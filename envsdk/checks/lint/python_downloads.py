"""Downloads and installs in a verifier's Python: in its own files, and in what its scripts hand to an interpreter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.lint.downloads import is_outside
from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles

_FETCH = re.compile(
    r"\b(?:urlopen|urlretrieve|requests\.\w+|httpx\.\w+|aiohttp\.\w+|Request|session\.(?:get|post)|wget\.download)"
    r"\(\s*(?:\w+\s*=\s*)?f?[\"'](?P<url>(?:https?|ftp)://[^\"'\s]+)"
)
_INSTALL = re.compile(
    r"[\"'](?:pip[0-9.]*|uv|npm|apt|apt-get|conda)[\"']\s*,\s*(?:[\"']pip[\"']\s*,\s*)?[\"'](?:install|add|i|ci)[\"']"
    r"|(?:system|run|call|check_call|check_output|Popen)\(\s*f?[\"'](?:python3? -m )?(?:pip3?|uv pip|npm|apt|apt-get) "
    r"(?:-\S+ )*(?:install|add)\b"
)


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A verifier whose Python fetches from a network that it does not declare."""
    if files.task.spec.verifier.network in {"public", "allowlist"}:
        return
    services = {service.name for service in files.task.spec.services}
    for path, text in files.under("tests").items():
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#"):
                continue
            if _INSTALL.search(line):
                what = "installs while verifying: bake what the verifier needs into the image"
                yield Fault("install_at_verify_time", path, number, what)
            elif (found := _FETCH.search(line)) and is_outside(found["url"], services):
                what = f"downloads {found['url']} while verifying: bring the file along under tests/"
                yield Fault("download_at_verify_time", path, number, what)
