"""The one exception tree of envsdk, registry and trainer.

    EnvsdkError                 base: code, message, hint, where
    |-- UsageError              the caller's input is wrong                (exit 2)
    |   `-- SpecError           a task or configuration does not validate  (exit 2; lists every problem)
    |-- PrerequisiteError       something must be installed or started     (exit 3)
    |-- SandboxError            a sandbox or its engine failed             (exit 4)
    |-- VerifierError           a verifier gave no usable reward           (exit 4)
    |-- EngineError             the inference engine failed                (exit 4)
    |-- StoreError              a database, blob store or file failed      (exit 4)
    |-- FaultyError             what was checked is bad                    (exit 1)
    `-- Interruption            the user stopped it                        (exit 130)

Every error says what happened, to which object, and what to do. ``code`` is stable and documented in
``docs/reference/errors.md``; errors pickle, since episodes run in worker processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class EnvsdkError(Exception):
    """Base of all expected failures.

    Args:
        message: what happened, in one sentence that names the object.
        code: stable identifier, ``snake_case``; defaults to the class's own.
        hint: what the reader should do about it.
        where: the object: a path, a task slug, a column of a query.
    """

    default_code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, *, code: str | None = None, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        fix = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{fix}"

    def as_json(self) -> dict[str, str]:
        """The error as one entry of the envelope's ``errors`` list."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "where": self.where}


def _rebuild(kind: type[EnvsdkError], message: str, state: dict[str, Any]) -> EnvsdkError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class UsageError(EnvsdkError):
    """The caller's input is wrong."""

    default_code = "usage"
    exit_code = 2


class SpecError(UsageError):
    """A task, task set or configuration does not validate; ``problems`` holds every finding, not the first."""

    default_code = "invalid_spec"

    def __init__(
        self,
        message: str,
        *,
        problems: tuple[dict[str, str], ...] = (),
        code: str | None = None,
        hint: str = "",
        where: str = "",
    ) -> None:
        super().__init__(message, code=code, hint=hint, where=where)
        self.problems = problems


class PrerequisiteError(EnvsdkError):
    """Something must be installed or started first."""

    default_code = "prerequisite_missing"
    exit_code = 3


class SandboxError(EnvsdkError):
    """A sandbox, its image or its engine failed. Never the model's doing by itself: the outcome table decides."""

    default_code = "sandbox_failed"


class VerifierError(EnvsdkError):
    """A verifier gave no usable reward; ``code`` is one of the reward contract's codes."""

    default_code = "verifier_failed"


class EngineError(EnvsdkError):
    """The inference engine failed: a request, a weight update, or its start."""

    default_code = "engine_failed"


class StoreError(EnvsdkError):
    """A database, blob store or file could not be read or written."""

    default_code = "store_failed"


class FaultyError(EnvsdkError):
    """What was checked is bad: a task whose oracle fails, a query that matches nothing to train on."""

    default_code = "faulty"
    exit_code = 1


class Interruption(EnvsdkError):  # noqa: N818 - no error: somebody changed their mind
    """The user stopped a command; ``result`` holds what it had come to, by the keys of its envelope."""

    default_code = "interrupted"
    exit_code = 130

    def __init__(
        self,
        message: str,
        *,
        result: Mapping[str, Any] | None = None,
        code: str | None = None,
        hint: str = "",
        where: str = "",
    ) -> None:
        super().__init__(message, code=code, hint=hint, where=where)
        self.result = dict(result or {})
