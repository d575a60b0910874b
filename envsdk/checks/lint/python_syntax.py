"""Python files of the verifier that are no Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A file ``tests/*.py`` that does not parse: no answer can ever pass it."""
    for path, text in files.under("tests").items():
        if not path.endswith(".py"):
            continue
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            number = getattr(error, "lineno", 0) or 0
            yield Fault("not_python", path, number, f"is not valid Python: {getattr(error, 'msg', error)}")
