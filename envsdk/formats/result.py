"""What came of an import: every source is a task or a rejection, and nothing is skipped in silence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from envsdk.errors import EnvsdkError, UsageError
from envsdk.spec.load import LoadWarning, Rejected, rejection
from envsdk.spec.model import Task

T = TypeVar("T")
_NUMBER = re.compile(r"\[\d+\]")


class Walk(Protocol):
    """Goes through the sources of an import one by one. One that does so for a person says how far it has come."""

    def __call__(self, sources: Iterable[T], /) -> Iterator[T]: ...


def quietly(sources: Iterable[T], /) -> Iterator[T]:
    """The walk that says nothing."""
    return iter(sources)


@dataclass
class ImportResult:
    """Grows while an import runs: tasks written, sources rejected, warnings."""

    tasks: list[Task] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[LoadWarning] = field(default_factory=list)

    def summary(self) -> dict[str, dict[str, int]]:
        """How often each code was given, the most frequent first; and each field that has no effect here."""
        fields = (item.field for item in self.warnings if item.code == "not_supported" and item.field)
        unheeded = Counter(_NUMBER.sub("[]", name) for name in fields)
        return {
            "rejected": dict(Counter(item.code for item in self.rejected).most_common()),
            "warnings": dict(Counter(item.code for item in self.warnings).most_common()),
            "unheeded": dict(unheeded.most_common()),
        }

    def add(self, path: str, make: Callable[[], Task]) -> None:
        """Make one task; its failure is recorded as this source's rejection."""
        try:
            self.tasks.append(make())
        except EnvsdkError as error:
            self.rejected.append(rejection(path, error))


def free_place(dest: Path, slug: str) -> Path:
    """The folder of a new task.

    Raises:
        UsageError: there is something already (code ``duplicate_slug``).
    """
    place = dest / slug
    if place.exists():
        hint = "import into an empty folder, or rename one"
        raise UsageError(f"a task {slug!r} is there already", code="duplicate_slug", where=str(place), hint=hint)
    return place
