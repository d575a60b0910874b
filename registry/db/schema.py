"""Bring a database's schema up to date with the migrations that ship in `registry.migrations`.

Each migration runs in a transaction on both databases, so an interrupted one leaves the version before it. A schema
newer than this program is refused, not guessed at.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from envsdk.errors import StoreError

MIGRATIONS = Path(__file__).parent.parent / "migrations"


def config_for(engine: Engine | None = None) -> Config:
    """Alembic's configuration, without an ini file; ``engine`` is handed to ``migrations/env.py``."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    return config


def bring_up_to_date(engine: Engine) -> None:
    """Run the migrations that are missing; nothing where there are none.

    Raises:
        StoreError: the schema is from a newer program (``schema_too_new``).
    """
    with _ONE_AT_A_TIME:
        _bring_up_to_date(engine)


# alembic keeps its context in module globals, which threads share; between processes the database's own lock decides.
_ONE_AT_A_TIME = threading.Lock()


def _bring_up_to_date(engine: Engine) -> None:
    config = config_for(engine)
    script = ScriptDirectory.from_config(config)
    head = script.get_current_head()
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    if current == head:
        return
    known = {revision.revision for revision in script.walk_revisions()}
    if current is not None and current not in known:
        raise StoreError(
            f"the database's schema {current!r} is newer than this program's {head!r}",
            code="schema_too_new",
            hint="upgrade envsdk, or open another registry",
        )
    command.upgrade(config, "head")
