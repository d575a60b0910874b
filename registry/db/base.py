"""Column types and the declarative base that every table shares.

Times are Unix seconds in UTC (`float`), so that both databases hold the same number; digests are 64 lower-case hex
digits.
"""

from __future__ import annotations

from typing import Annotated, Any

from sqlalchemy import JSON, BigInteger, Integer, MetaData, String
from sqlalchemy.orm import DeclarativeBase, mapped_column

BigId = BigInteger().with_variant(Integer(), "sqlite")

Id = Annotated[int, mapped_column(BigId, primary_key=True, autoincrement=True)]
Digest = Annotated[str, mapped_column(String(64))]
UnixTime = Annotated[float, mapped_column()]
JsonObject = Annotated[dict[str, Any], mapped_column(JSON)]


class Base(DeclarativeBase):
    """All tables. Constraint names are fixed, so that migrations can name them on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
