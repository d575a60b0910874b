"""Python files of the verifier that are no Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A file ``tests/*.py`` that does not parse: no answer can ever pass it."""
    for path, text in files.under("tests").items():
        if not path.endswith(".py"):
            continue
        if (error := _error(text)) is not None:
            yield Fault("not_python", path, error[0], f"is not valid Python: {error[1]}")


@lru_cache(maxsize=256)
def _error(text: str) -> tuple[int, str] | None:
    """Line and reason; kept, since a family's tasks have one verifier."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return getattr(error, "lineno", 0) or 0, str(getattr(error, "msg", error))
    return None
