"""What a Python verifier's process finds around it: environment variables, and how far its wall clock is moved."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envsdk.verifying import clock_shift


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Equal surroundings may share a process.

    Attributes:
        env: variables beside the plain ones, as sorted pairs.
        faketime: a shift of the wall clock such as ``+400d``; empty for none.
    """

    env: tuple[tuple[str, str], ...] = ()
    faketime: str = ""

    @classmethod
    def of(cls, env: Mapping[str, str] | None, faketime: str | None) -> Surroundings:
        """From what `envsdk.verifying.verify.verify` takes."""
        return cls(tuple(sorted((env or {}).items())), faketime or "")

    def prefix(self, folder: Path) -> list[str]:
        """Words to put before a command; what it needs is copied into ``folder``, which the command can read.

        Raises:
            UsageError: ``faketime`` is no shift.
            PrerequisiteError: the clock cannot be moved on this machine.
        """
        variables = dict(self.env)
        if self.faketime:
            library, _ = clock_shift.library()
            mine = folder / "clock-shift.so"
            shutil.copy(library, mine)
            variables |= {**clock_shift.variables(self.faketime), "LD_PRELOAD": str(mine)}
        return ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []


PLAIN = Surroundings()
