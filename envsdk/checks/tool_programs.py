"""Programs in the languages of text tools, awk, sed and perl: such as print a fixed text, and such as run a script.

``sed`` means GNU sed, and both of its programs act once the first line of their input is there.
"""

from __future__ import annotations

import base64
from typing import Literal

Tool = Literal["awk", "sed", "perl"]
TOOLS: tuple[Tool, ...] = ("awk", "sed", "perl")


def printing(tool: Tool, text: str) -> str:
    """A program that prints ``text`` and a newline once, whatever it is given, and ends with status 0."""
    if tool == "awk":
        return f"BEGIN {{ print {_in_quotes(text)}; exit }}\n"
    if tool == "perl":
        quoted = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"print '{quoted}', \"\\n\";\n"
    lines = "\\\n".join(text.replace("\\", "\\\\").split("\n"))
    return f"1i\\\n{lines}\nd\n"


def running(tool: Tool, script: str) -> str:
    """A program that has ``sh`` run a script, and prints what that prints."""
    packed = base64.b64encode(script.encode()).decode()
    command = f"echo {packed} | base64 -d | sh"
    if tool == "awk":
        return f"BEGIN {{ system({_in_quotes(command)}); exit }}\n"
    return f"system('{command}');\n" if tool == "perl" else f"1e {command}\nd\n"


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
