"""The fastest way into a table that each database has: ``executemany`` on SQLite, ``COPY`` on PostgreSQL.

Rows carry their ids where numbers must have no gaps; the caller holds the write lock, so they cannot be taken twice.
Values of JSON columns are JSON already. Names of tables and columns come from the models, never from outside.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, FromClause, any_, func, literal, select
from sqlalchemy.orm import Session

_COPY_FROM = 50
"""Below this many rows the set-up of COPY costs more than it saves."""


def insert_rows(session: Session, table: FromClause, rows: Sequence[dict[str, Any]]) -> None:
    """Insert ``rows``, which all have the same keys, in the session's transaction."""
    if rows:
        columns = list(rows[0])
        insert_values(session, table, columns, [tuple(map(row.__getitem__, columns)) for row in rows])


def insert_values(
    session: Session, table: FromClause, columns: Sequence[str], values: Sequence[tuple[Any, ...]]
) -> None:
    """`insert_rows` of tuples that hold ``columns`` in their order."""
    if not values:
        return
    connection = session.connection()
    name, named = table.name, ", ".join(columns)  # type: ignore[attr-defined]
    if connection.dialect.name == "postgresql" and len(values) >= _COPY_FROM:
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(f"COPY {name} ({named}) FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)
        return
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ", ".join(mark for _ in columns)
    connection.exec_driver_sql(f"INSERT INTO {name} ({named}) VALUES ({marks})", values)  # noqa: S608


def update_rows(session: Session, table: FromClause, rows: Sequence[dict[str, Any]], *, where: Sequence[str]) -> None:
    """Set the columns of each row where the columns ``where`` have its values; all rows have the same keys."""
    if rows:
        columns = [*(column for column in rows[0] if column not in where), *where]
        update_values(session, table, columns, [tuple(map(row.__getitem__, columns)) for row in rows], where=len(where))


def update_values(
    session: Session, table: FromClause, columns: Sequence[str], values: Sequence[tuple[Any, ...]], *, where: int
) -> None:
    """`update_rows` of tuples that hold ``columns`` in their order, the last ``where`` of which find the row."""
    if not values:
        return
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    setting = ", ".join(f"{column} = {mark}" for column in columns[:-where])
    finding = " AND ".join(f"{column} = {mark}" for column in columns[-where:])
    statement = f"UPDATE {table.name} SET {setting} WHERE {finding}"  # type: ignore[attr-defined]  # noqa: S608
    connection.exec_driver_sql(statement, values)


def is_one_of(session: Session, column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
    """``column`` is one of ``values``, sent as one parameter.

    A list of a thousand costs no more to compile than of one.
    """
    condition: ColumnElement[bool]
    if session.connection().dialect.name == "sqlite":
        listed = func.json_each(json.dumps(list(values))).table_valued("value")
        condition = column.in_(select(listed.c.value))
    else:
        condition = column == any_(literal(list(values), ARRAY(column.type)))
    return condition
