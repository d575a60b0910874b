"""Files that an image brings beyond its distribution's packages, as the agent can read them."""

from __future__ import annotations

import re

from envsdk.checks.stage import Stage

MAX_FILES = 400
MAX_KIB = 64
_PRUNED = (
    "/proc /sys /dev /run /boot /var/lib /var/cache /var/log /usr/share/doc /usr/share/man /usr/share/locale "
    "/usr/share/zoneinfo /usr/share/perl /usr/share/python3 /usr/lib/python3 /usr/lib/locale /usr/share/mime "
    "/usr/share/info /usr/share/i18n /usr/share/bash-completion /usr/share/applications /etc/alternatives /etc/ssl"
)
_LIST = f"""
owned=$(mktemp)
if [ -d /var/lib/dpkg/info ]; then
    cat /var/lib/dpkg/info/*.list | sed -E 's#^/(bin|sbin|lib|lib32|lib64|libx32)/#/usr/\\1/#' | sort -u > "$owned"
fi
prune=''
for place in {_PRUNED}; do prune="$prune -path $place -o"; done
find / -xdev \\( $prune -path '/usr/local/lib/python3*' -o -path '*/node_modules' -o -name __pycache__ \\) -prune -o \\
    -type f -size -{MAX_KIB}k -readable -print 2>/dev/null | sort -u | comm -13 "$owned" - | head -n {MAX_FILES}
rm -f "$owned"
"""
_GENERATED = re.compile(
    r"/etc/(?:(?:passwd|group|shadow|gshadow|subuid|subgid)-?|hosts|hostname|resolv\.conf|ld\.so\.cache|machine-id|shells"
    r"|environment|timezone|\.pwd\.lock|adjtime|mtab|inputrc|nsswitch\.conf|apt/.*|rc[0-9S]\.d/.*)"
)


async def image_files(stage: Stage) -> dict[str, str]:
    """Path -> text of every small text file that the agent can read and that no package owns.

    Raises:
        SandboxError: the box does not answer.
    """
    return await stage.once("image_files", lambda: _read(stage))  # type: ignore[no-any-return]


async def _read(stage: Stage) -> dict[str, str]:
    listed = await stage.probe(_LIST, user=stage.task.spec.agent.user)
    paths = [path for path in listed.stdout.decode("utf-8", "replace").splitlines() if not _GENERATED.fullmatch(path)]
    contents = await stage.read_pristine(paths)
    return {path: text for path, data in contents.items() if (text := _text(data)) is not None}


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
