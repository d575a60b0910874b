"""Programs that do nothing of what was asked: constants, nothing at all, a loop without end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.sources import source_language
from envsdk.checks.program_files import Language, programs
from envsdk.checks.tool_programs import printing

CONSTANTS: tuple[object, ...] = ("", "x", 0, 1, True)
_MAIN: Mapping[str, tuple[bytes, str]] = {
    "cpp": (rb"\bmain\s*\(", "int main(void) {{ return 0; }}\n"),
    "rust": (rb"\bfn main\s*\(", "fn main() {{}}\n"),
    "go": (rb"\bfunc main\s*\(", "package main\n\nfunc main() {{}}\n"),
    "java": (rb"\bvoid main\s*\(", "public class {stem} {{ public static void main(String[] args) {{ }} }}\n"),
}
_ENDLESS: dict[Language, str] = {
    "python": "import time\n\nwhile True:\n    time.sleep(60)\n",
    "shell": "while :; do sleep 60; done\n",
    "javascript": "while (true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)\n",
    "awk": 'BEGIN { while (1) system("sleep 60") }\n',
    "sed": "1e while :; do sleep 60; done\n",
    "perl": "sleep 60 while 1;\n",
}


def mutants(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """For all programs of a submission together; data files beside them say the same constant on every line, or once.

    Once is what a program prints that a verifier runs to know what the data should be.
    """
    yield from _idle(outputs)
    found = programs(outputs)
    if not found:
        return
    for value in CONSTANTS:
        files = {path: constant_program(language, outputs[path], value) for path, language in found.items()}
        yield Mutant(f"programs that only give {value!r}", files)
        data = {path: _same_lines(content, value) for path, content in outputs.items() if path not in found}
        if data:
            yield Mutant(f"programs that only give {value!r}, and data to match", {**files, **data})
        once = dict.fromkeys(data, f"{value}\n".encode())
        if once != data:
            yield Mutant(f"programs that only give {value!r}, and data that say it once", {**files, **once})
    yield from _echoes(outputs, found)
    endless = {path: _ENDLESS[language].encode() for path, language in found.items()}
    yield Mutant("programs that never end", endless, endless=True)


def _echoes(outputs: Mapping[str, bytes], found: Mapping[str, Language]) -> Iterator[Mutant]:
    """Python functions that give back what they are given, where there are two: each other's inverse, and no more."""
    files = {}
    for path, language in found.items():
        names = functions_of(outputs[path]) if language == "python" else []
        if len(names) > 1:
            files[path] = "".join(
                f"def {name}(given, *_args, **_named):\n    return given\n\n\n" for name in names
            ).encode()
    if files and len(files) == len(found):
        yield Mutant("functions that give back what they are given", files)


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
    if language in {"awk", "sed", "perl"}:
        return printing(language, str(value)).encode()
    return f"module.exports = new Proxy(() => {value!r}, {{}})\nconsole.log({str(value)!r})\n".encode()


def functions_of(source: bytes) -> list[str]:
    """Names of the top-level functions of a Python module, second names too; none where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and _is_function(node.value, names):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def _is_function(value: ast.expr, known: list[str]) -> bool:
    return isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in known)


def _idle(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """A program in a compiled language that ends at once and says nothing, where the submission has a ``main``."""
    for path, content in outputs.items():
        language = source_language(path)
        if language is not None and language in _MAIN and re.search(_MAIN[language][0], content):
            stem = path.rsplit("/", 1)[-1].partition(".")[0]
            idle = _MAIN[language][1].format(stem=stem).encode()
            if idle.split() != content.split():
                yield Mutant(f"{path}: a program that does nothing", {path: idle})


def _same_lines(content: bytes, value: object) -> bytes:
    return f"{value}\n".encode() * max(1, len(content.splitlines()))
