"""An interpreter that notes how programs of the submission are run: for languages in which a recorder is hard to write.

It takes the place of the real one in a box. What does not run one of the programs is passed on untouched.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping

from envsdk.checks.program_files import Language
from envsdk.checks.tool_programs import TOOLS

_SHADOW = """#!/bin/sh
real=@real@
path= prefix= args= last=
b() { base64 | tr -d '\\n'; }
for word; do
    one=$(printf %s "$word" | b),
    if [ -n "$path" ]; then args="$args$one"; else prefix="$prefix$one"; fi
    case @tool@:$last in
        perl:* | *:-*f | *:--file)
            for program in @programs@; do
                [ -n "$path" ] || [ ! "$word" -ef "$program" ] || path=$program
            done
            ;;
    esac
    last=$word
done
[ -n "$path" ] || exec "$real" "$@"
in=
[ -t 0 ] || in=$(cat | b)
out=$(mktemp)
printf %s "$in" | base64 -d | "$real" "$@" > "$out"
code=$?
told=$(head -c 4096 "$out" | b)
printf '%s run @tool@:%s;%s %s %s\\n' "$path" "$prefix" "$args" "${in:--}" "${told:--}" >> @log@
cat "$out"
rm -f "$out"
exit $code
"""
_INSTALL = """real=$(readlink -f "$(command -v {tool})")
case $real in
    '' | */busybox) ;;
    *)
        mv "$real" "$real.envsdk-real"
        printf %s {shadow} | base64 -d | while IFS= read -r line; do
            if [ "$line" = real=@real@ ]; then line=real=$real.envsdk-real; fi
            printf '%s\\n' "$line"
        done > "$real"
        chmod 755 "$real"
        ;;
esac
"""


def install(found: Mapping[str, Language], log: str) -> str:
    """Commands for root that put the shadows of all tools in which programs are written in the real ones' place.

    Args:
        found: path -> language of every program.
        log: where a line is added for each run: ``PATH run TOOL:WORDS;WORDS INPUT OUTPUT``, words up to the program's
            path and behind it, each in base64 with a comma behind it.
    """
    commands = []
    for tool in TOOLS:
        paths = [path for path, language in found.items() if language == tool]
        if paths:
            shadow = _SHADOW.replace("@tool@", tool).replace("@log@", log).replace("@programs@", shlex.join(paths))
            packed = base64.b64encode(shadow.encode()).decode()
            commands.append(_INSTALL.replace("{tool}", tool).replace("{shadow}", packed))
    return "".join(commands)
