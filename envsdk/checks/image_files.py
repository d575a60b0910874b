"""Files that an image brings beyond its distribution's packages, as the agent can read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envsdk.checks.outputs import read_files
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.unpacking import text_of, texts_in

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
_REPOSITORIES = (
    "find / -xdev \\( -path /proc -o -path /sys \\) -prune -o -type d -name .git -print 2>/dev/null | head -n 5"
)
_GENERATED = re.compile(
    r"/etc/(?:(?:passwd|group|shadow|gshadow|subuid|subgid)-?|hosts|hostname|resolv\.conf|ld\.so\.cache|machine-id|shells"
    r"|environment|timezone|\.pwd\.lock|adjtime|mtab|inputrc|nsswitch\.conf|apt/.*|rc[0-9S]\.d/.*)"
)


@dataclass(frozen=True, slots=True)
class ImageView:
    """What an agent finds in the pristine image.

    Attributes:
        files: path -> text of every small text file that the agent can read and that no package owns, and of those
            inside archives and databases (`envsdk.checks.unpacking`).
        others: paths of such files that are no text.
        environment: its variables.
        repositories: folders named ``.git``.
    """

    files: dict[str, str]
    others: tuple[str, ...]
    environment: dict[str, str]
    repositories: tuple[str, ...]


async def image_view(stage: Stage) -> ImageView:
    """Look around in one box, once for all tasks of an image. Raises `SandboxError` where the box does not answer."""
    return await stage.once_per_image("image_view", lambda: _look(stage))  # type: ignore[no-any-return]


async def _look(stage: Stage) -> ImageView:
    user = stage.task.spec.agent.user
    async with stage.box(Scene()) as box:

        async def lines(command: str, user: str) -> list[str]:
            ended = await box.exec(command, user=user, cwd="/", timeout_s=60.0, output_cap_bytes=8 << 20)
            return ended.stdout.decode("utf-8", "replace").splitlines()

        paths = [path for path in await lines(_LIST, user) if not _GENERATED.fullmatch(path)]
        contents = await read_files(box, paths)
        environment = dict(line.split("=", 1) for line in await lines("env", user) if "=" in line)
        repositories = await lines(_REPOSITORIES, "root")
    files = {path: text for path, data in contents.items() if (text := text_of(data)) is not None}
    others = tuple(path for path in contents if path not in files)
    for path in others:
        files |= texts_in(path, contents[path])
    return ImageView(files, others, environment, tuple(repositories))
