"""Installs and downloads while verifying: they fail some day, and then a right answer is judged wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.shell import commands, is_shell

_INSTALL = re.compile(
    r"\b(?:pip[0-9.]*\s+(?:install|download)|(?:apt|apt-get|aptitude)\s+(?:-\S+\s+)*(?:install|update)"
    r"|apk\s+add|(?:yum|dnf|conda|mamba|brew|gem|cargo)\s+install|npm\s+(?:install|i|ci)\b|(?:yarn|pnpm)\s+(?:add|install)"
    r"|go\s+(?:get|install)|uv\s+(?:pip\s+install|add|sync|tool\s+install)|uvx\s|npx\s+(?!--no-install)|git\s+clone)"
)
_FETCH = re.compile(r"\b(?:curl|wget)\b[^|;&]*?(?P<url>(?:https?|ftp)://[^\s\"')]+)")
_LOOPBACK = re.compile(r"://(?:localhost|127\.|0\.0\.0\.0|\[::1\]|\$|\{)")
_SAYS = re.compile(r"^(?:echo|printf)\b")


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A verifier that fetches from a network that it does not declare."""
    if files.task.spec.verifier.network in {"public", "allowlist"}:
        return
    services = {service.name for service in files.task.spec.services}
    for path, text in files.under("tests").items():
        if not is_shell(path, text):
            continue
        for line in commands(text):
            if _SAYS.match(line.text):
                continue
            if found := _INSTALL.search(line.bare):
                what = f"`{found[0].strip()}` while verifying: bake what the verifier needs into the image"
                yield Fault("install_at_verify_time", path, line.number, what)
            elif (found := _FETCH.search(line.text)) and is_outside(found["url"], services):
                what = f"downloads {found['url']} while verifying: bring the file along under tests/"
                yield Fault("download_at_verify_time", path, line.number, what)


def is_outside(url: str, services: set[str]) -> bool:
    """Whether an address is neither this machine's nor a service's of the task."""
    host = re.split(r"[/:?#]", url.partition("://")[2], maxsplit=1)[0]
    return _LOOPBACK.search(url) is None and host not in services
