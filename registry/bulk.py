"""The fastest way into a table that each database has: ``executemany`` on SQLite, ``COPY`` on PostgreSQL.

Rows carry their ids: the caller holds the write lock, so numbers cannot be taken twice. Names of tables and columns
come from the models, never from outside.
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
    if not rows:
        return
    connection = session.connection()
    columns = list(rows[0])
    if connection.dialect.name == "postgresql" and len(rows) >= _COPY_FROM:
        statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"  # type: ignore[attr-defined]
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([row[column] for column in columns])
        return
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" for _ in columns)
        statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # type: ignore[attr-defined]  # noqa: S608
        connection.exec_driver_sql(statement, [tuple(row[column] for column in columns) for row in rows])
        return
    connection.execute(table.insert(), list(rows))  # type: ignore[attr-defined]


def update_rows(session: Session, table: FromClause, rows: Sequence[dict[str, Any]], *, where: Sequence[str]) -> None:
    """Set the columns of each row where the columns ``where`` have its values; all rows have the same keys."""
    if not rows:
        return
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    values = [column for column in rows[0] if column not in where]
    setting = ", ".join(f"{column} = {mark}" for column in values)
    finding = " AND ".join(f"{column} = {mark}" for column in where)
    statement = f"UPDATE {table.name} SET {setting} WHERE {finding}"  # type: ignore[attr-defined]  # noqa: S608
    order = [*values, *where]
    connection.exec_driver_sql(statement, [tuple(row[column] for column in order) for row in rows])


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
