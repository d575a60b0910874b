"""Programs that do nothing of what was asked: constants, nothing at all, a loop without end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.program_files import Language, programs

CONSTANTS: tuple[object, ...] = ("", "x", 0, 1, True)
_ENDLESS: dict[Language, str] = {
    "python": "import time\n\nwhile True:\n    time.sleep(60)\n",
    "shell": "while :; do sleep 60; done\n",
    "javascript": "while (true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)\n",
}


def mutants(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """For all programs of a submission together; data files beside them say the same constant on every line."""
    found = programs(outputs)
    if not found:
        return
    for value in CONSTANTS:
        files = {path: constant_program(language, outputs[path], value) for path, language in found.items()}
        yield Mutant(f"programs that only give {value!r}", files)
        data = {path: _same_lines(content, value) for path, content in outputs.items() if path not in found}
        if data:
            yield Mutant(f"programs that only give {value!r}, and data to match", {**files, **data})
    endless = {path: _ENDLESS[language].encode() for path, language in found.items()}
    yield Mutant("programs that never end", endless, endless=True)


def constant_program(language: Language, original: bytes, value: object) -> bytes:
    """A program that prints ``value`` whatever it is asked, and whose functions return it."""
    if language == "python":
        functions = "".join(
            f"def {name}(*_args, **_named):\n    return {value!r}\n\n\n" for name in functions_of(original)
        )
        return f"{functions}if __name__ == '__main__':\n    print({str(value)!r})\n".encode()
    if language == "shell":
        quoted = str(value).replace("'", "'\\''")
        return f"printf '%s\\n' '{quoted}'\n".encode()
    return f"module.exports = new Proxy(() => {value!r}, {{}})\nconsole.log({str(value)!r})\n".encode()


def functions_of(source: bytes) -> list[str]:
    """Names of the top-level functions of a Python module; none where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _same_lines(content: bytes, value: object) -> bytes:
    return f"{value}\n".encode() * max(1, len(content.splitlines()))
