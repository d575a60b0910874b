"""Free words: which items' texts contain them, from the index of three-character pieces that each database has.

Both databases find the same: `item.search_text` contains the word, letter by letter. A word that few items contain
is looked up and becomes a list of ids, which a query can start from. A common one, or one with no three letters or
digits in a row, is looked for in each item on the way.
"""

from __future__ import annotations

import re

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from registry.db import Item

FEW = 20_000
"""Up to so many items a list is cheaper to start from than any order is to walk (at a million items)."""
_INDEXED = re.compile(r"[^\W_]{3}")
_SQLITE = text("SELECT rowid FROM item_words WHERE item_words MATCH :word LIMIT :most")


def few_ids(session: Session, word: str) -> list[int] | None:
    """Ids of all items that contain ``word``; `None` where they are many, or the index cannot tell.

    Args:
        session: of an open registry.
        word: in lower case, as the text is.
    """
    # pg_trgm makes its pieces of letters and digits alone, and both databases should take the same way.
    if not _INDEXED.search(word) or "\0" in word:
        return None
    if session.connection().dialect.name == "sqlite":
        phrase = '"' + word.replace('"', '""') + '"'
        found = session.scalars(_SQLITE, {"word": phrase, "most": FEW + 1}).all()
    else:
        contains = Item.search_text.contains(word, autoescape=True)
        found = session.scalars(select(Item.id).where(contains).limit(FEW + 1)).all()
    return None if len(found) > FEW else list(found)


def index_words(session: Session) -> None:
    """Make SQLite's index anew from the texts; PostgreSQL's is an index like any other, and always right."""
    if session.connection().dialect.name == "sqlite":
        session.execute(text("INSERT INTO item_words (item_words) VALUES ('rebuild')"))


def indexed_items(session: Session) -> int | None:
    """How many items SQLite's index knows; `None` where the database itself keeps it."""
    if session.connection().dialect.name != "sqlite":
        return None
    return session.scalar(text("SELECT count(*) FROM item_words_docsize")) or 0
