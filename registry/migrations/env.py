"""alembic's entry: run migrations on the engine handed over by `registry.db.schema`, all in one transaction."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import text

from registry.db import Base

_MIGRATION_LOCK = 0x656E7674


def _managed(_object: Any, name: str | None, _kind: str, _reflected: bool, _compared: Any) -> bool:
    """The index of words has another shape in each database and is no model; `v0002_lookups` alone makes it."""
    return not (name or "").startswith(("item_words", "ix_item_words"))


def run() -> None:
    """Migrate. Two processes that open a fresh database at once queue on the lock; the second finds nothing to do."""
    engine = context.config.attributes["engine"]
    with engine.connect().execution_options(envsdk_write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=connection.dialect.name == "sqlite",
            transactional_ddl=True,
            compare_type=True,
            include_object=_managed,
        )
        context.run_migrations()


run()
