"""What came of an import: every source is a task or a rejection, and nothing is skipped in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from envsdk.errors import EnvsdkError, UsageError
from envsdk.spec.load import LoadWarning, Rejected, rejection
from envsdk.spec.model import Task


@dataclass
class ImportResult:
    """Grows while an import runs: tasks written, sources rejected, warnings."""

    tasks: list[Task] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[LoadWarning] = field(default_factory=list)

    def summary(self) -> dict[str, dict[str, int]]:
        """How often each code was given, the most frequent first."""
        return {
            "rejected": dict(Counter(item.code for item in self.rejected).most_common()),
            "warnings": dict(Counter(item.code for item in self.warnings).most_common()),
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
