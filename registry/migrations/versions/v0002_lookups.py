"""Two ways to find a task without reading all of them: by what its text contains, and its standings by its number.

The words are an index of three-character pieces. SQLite keeps it as a virtual table over ``item``, filled by a
trigger; PostgreSQL as an index of ``pg_trgm``. Where a PostgreSQL server has no such extension, or its user may not
create it, words are still found, by reading.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# The text is in lower case already; folding it again would find more than the other database does.
_TABLE = """
CREATE VIRTUAL TABLE item_words
USING fts5(search_text, content='item', content_rowid='id', tokenize='trigram case_sensitive 1')
"""
# Items are never deleted and their text never changes, so that inserts are all there is to follow. A later migration
# that makes the table ``item`` anew makes this trigger anew.
_TRIGGER = """
CREATE TRIGGER item_words_insert AFTER INSERT ON item
BEGIN INSERT INTO item_words (rowid, search_text) VALUES (new.id, new.search_text); END
"""
_SQLITE = (_TABLE, "INSERT INTO item_words (item_words) VALUES ('rebuild')", _TRIGGER)
_POSTGRESQL = """
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX ix_item_words ON item USING gin (search_text gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
    RAISE NOTICE 'free words stay without an index: %', SQLERRM;
END $$
"""


def upgrade() -> None:
    """Apply."""
    op.create_index("ix_standing_item_id", "standing", ["item_id"])
    bind = op.get_bind()
    for statement in _SQLITE if bind.dialect.name == "sqlite" else (_POSTGRESQL,):
        bind.execute(text(statement))


def downgrade() -> None:
    """Undo; the extension stays, others may use it."""
    bind = op.get_bind()
    if bind.dialect.name == "sqlite":
        bind.execute(text("DROP TRIGGER item_words_insert"))
        bind.execute(text("DROP TABLE item_words"))
    else:
        bind.execute(text("DROP INDEX IF EXISTS ix_item_words"))
    op.drop_index("ix_standing_item_id", "standing")
