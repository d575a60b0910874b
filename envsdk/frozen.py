"""The base of every record that is written out or read back: immutable, and strict about its fields.

Promised: a record never changes after it was made, and a field that nobody declared is refused with its name, never
dropped. Not promised: deep immutability; a record's fields should be frozen values themselves. Values that stay in one
process are frozen dataclasses instead.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
