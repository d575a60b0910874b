"""What a verifier asks of a program that was handed in, and what the oracle's program answers: seen by a recorder.

For the length of one verification each program is replaced by a recorder that runs the original and notes arguments,
input and output; functions of Python modules note arguments and results. For awk, sed and perl it is the interpreter
that is replaced.
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Mapping
from dataclasses import dataclass

from envsdk.checks.mutation import shadowing
from envsdk.checks.mutation.constant_programs import functions_of
from envsdk.checks.program_files import programs
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.tool_programs import TOOLS

_LOG = "/tmp/.envsdk-record"  # noqa: S108 - inside the box
_ORIGINAL = "/tmp/.envsdk-original"  # noqa: S108 - inside the box

_PYTHON = """import base64, os, subprocess, sys
given = sys.stdin.buffer.read() if not os.isatty(0) else b""
flags = ["-I"] if sys.flags.isolated else []
run = subprocess.run([sys.executable, *flags, "{original}", *sys.argv[1:]], input=given, stdout=subprocess.PIPE)
fields = [repr(sys.argv[1:]).encode(), given[:4096], run.stdout[:4096]]
with open("{log}", "ab") as f:
    f.write(b"{path} run " + b" ".join(base64.b64encode(x) or b"-" for x in fields) + b"\\n")
sys.stdout.buffer.write(run.stdout)
sys.stdout.flush()
os._exit(run.returncode if run.returncode >= 0 else 1)
"""
_MODULE = """


def _envsdk_recorded(function):
    def recorded(*args, **named):
        result = function(*args, **named)
        try:
            import base64
            fields = [repr(args).encode(), repr(named).encode(), repr(result).encode()]
            with open("{log}", "ab") as f:
                f.write(b"{path} call:" + function.__name__.encode() + b" ")
                f.write(b" ".join(base64.b64encode(x[:4096]) for x in fields) + b"\\n")
        except Exception:
            pass  # values that cannot be written are not compared; the recorded program goes on as it was
        return result
    return recorded


for _envsdk_name in {names!r}:
    globals()[_envsdk_name] = _envsdk_recorded(globals()[_envsdk_name])
"""
_SHELL = """b() {{ base64 | tr -d '\\n'; }}
in=
[ -t 0 ] || in=$(cat | b)
out=$(printf %s "$in" | base64 -d | sh {original} "$@" | b)
code=$?
args=
for word; do args="$args$(printf %s "$word" | b),"; done
printf '{path} run sh:%s %s %s\\n' "$args" "${{in:--}}" "${{out:--}}" >> {log}
printf %s "$out" | base64 -d
exit $code
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to one program. ``function`` is empty for a run; ``answer`` is what was printed or returned.

    ``command``: the words of a run up to the program's path, where they were seen.
    """

    path: str
    function: str
    arguments: tuple[object, ...]
    given: bytes
    answer: object
    command: tuple[str, ...] = ()


async def record(stage: Stage, outputs: Mapping[str, bytes]) -> list[Asked]:
    """Everything the verifier asks of the oracle's programs, in order. Raises `SandboxError`."""
    found = programs(outputs)
    files: dict[str, bytes] = {}
    for number, (path, language) in enumerate(found.items()):
        original = f"{_ORIGINAL}-{number}"
        names = functions_of(outputs[path]) if language == "python" else []
        if names:
            files[path] = outputs[path] + _MODULE.format(log=_LOG, path=path, names=names).encode()
        elif language in {"python", "shell"}:
            wrapper = _PYTHON if language == "python" else _SHELL
            files[path] = wrapper.format(log=_LOG, path=path, original=original).encode()
            files[original] = outputs[path]
    shadows = shadowing.install(found, _LOG)
    if not files and not shadows:
        return []
    scene = Scene(files=files, after_oracle=True)
    _, log = await stage.watch(scene, before=f": > {_LOG}; chmod 666 {_LOG}\n{shadows}", after=f"cat {_LOG}")
    return [asked for line in log.decode("utf-8", "replace").splitlines() if (asked := _parsed(line)) is not None]


def _parsed(line: str) -> Asked | None:
    fields = line.split(" ")
    if len(fields) != 5:
        return None
    path, what, arguments, given, answer = fields
    try:
        if what.startswith("call:"):
            values = ast.literal_eval(_text(arguments))
            return Asked(path, what.removeprefix("call:"), values, b"", ast.literal_eval(_text(answer)))
        command: tuple[str, ...] = ()
        kind, mark, rest = arguments.partition(":")
        if mark and kind in TOOLS:
            before, _, rest = rest.partition(";")
            command = (kind, *_words(before))
        words = _words(rest) if mark else tuple(ast.literal_eval(_text(arguments)))
        return Asked(path, "", words, _data(given), _text(answer), command)
    except (ValueError, SyntaxError):
        return None


def _words(fields: str) -> tuple[str, ...]:
    return tuple(_text(word) for word in fields.split(",")[:-1])


def _data(field: str) -> bytes:
    return b"" if field == "-" else base64.b64decode(field)


def _text(field: str) -> str:
    return _data(field).decode("utf-8", "replace")
