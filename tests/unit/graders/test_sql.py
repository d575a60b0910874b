"""Queries by what they select: read-only, bounded, order only where the truth declares it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import VerifierError
from envsdk.graders import sql
from envsdk.graders.sql import is_ordered

TABLE = "CREATE TABLE t(a INTEGER, b TEXT, c REAL);"
DATABASE = f"{TABLE} INSERT INTO t VALUES (1, 'x', 0.1), (2, 'y', 0.2), (3, NULL, 0.3);"
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ("select a, b from t", "correct"),
        ("SELECT a, b FROM t ORDER BY a DESC;", "correct"),
        ("```sql\nSELECT a AS x, b AS y FROM main.t\n```", "correct"),
        ("VALUES (1, 'x'), (3, NULL), (2, 'y')", "correct"),
        ("select b, a from t", "incorrect"),
        ("select a, b from t limit 2", "incorrect"),
        ("select a, b from t union all select a, b from t", "incorrect"),
        ("select a, b, c from t", "incorrect"),
        ("select a, coalesce(b, '') from t", "incorrect"),
        ("", "no_answer"),
        ("I cannot help with that.", "no_answer"),
        ("select a, b from nowhere", "no_answer"),
        ("select 1; select 2", "no_answer"),
        ("-- nothing", "no_answer"),
        ("select a\x00 from t", "no_answer"),
    ],
)
def test_rows_are_compared_as_a_collection(candidate: str, verdict: str) -> None:
    assert sql(candidate, "SELECT a, b FROM t", database=DATABASE) == verdict


@pytest.mark.parametrize(
    "candidate",
    [
        "DELETE FROM t",
        "DROP TABLE t",
        "INSERT INTO t VALUES (4, '', 0) RETURNING a, b",
        "ATTACH '/tmp/other.db' AS other",
        "PRAGMA table_info(t)",
        "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/copy.db'",
        "CREATE TEMP TABLE u(a)",
        "SELECT 1; DROP TABLE t",
        "BEGIN",
    ],
)
def test_a_candidate_can_only_read(candidate: str) -> None:
    assert sql(candidate, "SELECT a, b FROM t", database=DATABASE) == "no_answer"


@pytest.mark.parametrize(
    "candidate",
    [
        ENDLESS,
        ENDLESS.replace("count(*)", "n"),
        "SELECT zeroblob(1000000000)",
        "SELECT hex(zeroblob(17000000))",
        "SELECT zeroblob(1000000) FROM t a, t b, t c, t d",
        "SELECT 1 FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k",
    ],
)
def test_what_takes_too_much_is_incorrect(candidate: str) -> None:
    assert sql(candidate, "SELECT a FROM t", database=DATABASE, timeout_s=0.5) == "incorrect"


@pytest.mark.parametrize(
    ("candidate", "truth", "verdict"),
    [
        ("SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a", "incorrect"),
        ("SELECT a FROM t", "SELECT a FROM t ORDER BY a DESC", "incorrect"),
        ("SELECT a FROM t ORDER BY -a", "SELECT a FROM t ORDER BY a DESC", "correct"),
        ("SELECT a FROM t ORDER BY -a", "SELECT a FROM (SELECT a FROM t ORDER BY a)", "correct"),
        ("SELECT '1'", "SELECT 1", "incorrect"),
        ("SELECT 1.0", "SELECT 1", "correct"),
        ("SELECT x'41'", "SELECT 'A'", "incorrect"),
        ("SELECT NULL", "SELECT NULL", "correct"),
        ("SELECT NULL", "SELECT 0", "incorrect"),
        ("SELECT ''", "SELECT NULL", "incorrect"),
        ("SELECT 9007199254740993", "SELECT 9007199254740992", "incorrect"),
        ("SELECT sum(c) FROM (SELECT c FROM t ORDER BY -c)", "SELECT sum(c) FROM t", "correct"),
        ("SELECT avg(c) + 0.001 FROM t", "SELECT avg(c) FROM t", "incorrect"),
        ("SELECT 1e999", "SELECT -1e999", "incorrect"),
        ("SELECT 1 WHERE 0", "SELECT 2 WHERE 0", "correct"),
        ("SELECT 1, 2 WHERE 0", "SELECT 2 WHERE 0", "incorrect"),
        ("SELECT cast(x'ff41' AS TEXT)", "SELECT cast(x'ff41' AS TEXT)", "correct"),
        ("SELECT 'e\u0301'", "SELECT '\u00e9'", "incorrect"),
        ("SELECT c, a FROM t", "SELECT c + 1e-12, a FROM t ORDER BY a", "correct"),
    ],
)
def test_values_and_order(candidate: str, truth: str, verdict: str) -> None:
    assert sql(candidate, truth, database=DATABASE) == verdict


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT 1 ORDER BY 1", True),
        ("select a from t order\n by a limit 1", True),
        ("SELECT 1 UNION SELECT 2 ORDER /* so */ BY 1", True),
        ("WITH x AS (SELECT a FROM t) SELECT * FROM x -- last\nORDER BY a", True),
        ("SELECT (SELECT 1 ORDER BY 1)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'order by'", False),
        ("SELECT 1 -- ORDER BY 1", False),
        ('SELECT "order" by', False),
        ("SELECT order_by FROM t", False),
        ("SELECT 'it''s' ORDER BY 1", True),
        ("SELECT 1 /* ORDER BY", False),
    ],
)
def test_order_is_declared_outside_of_subqueries(query: str, ordered: bool) -> None:
    assert is_ordered(query) is ordered


@pytest.mark.parametrize(
    ("truth", "database"),
    [
        ("SELEC a FROM t", DATABASE),
        ("SELECT a FROM u", DATABASE),
        ("SELECT 1", "CREATE"),
        ("SELECT 1 FROM t", b"no database"),
        (ENDLESS, DATABASE),
    ],
)
def test_a_truth_that_does_not_run_is_the_tasks_fault(truth: str, database: bytes | str) -> None:
    with pytest.raises(VerifierError) as caught:
        sql("SELECT 1", truth, database=database, timeout_s=0.5)
    assert caught.value.code == "unreadable_truth"


def test_a_database_may_be_a_file(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "d")
    connection.executescript(DATABASE)
    connection.close()
    content = (tmp_path / "d").read_bytes()
    assert sql("SELECT max(a) FROM t", "SELECT 3", database=content) == "correct"
    assert (tmp_path / "d").read_bytes() == content


ROWS = st.lists(st.tuples(st.integers(-9, 9), st.sampled_from(["a", "b"]), st.floats(-2, 2)), min_size=1, max_size=6)


@given(ROWS, st.randoms(use_true_random=False))
def test_rows_in_another_order_are_the_same_collection(rows: list[tuple[int, str, float]], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    queries = ["VALUES " + ", ".join(f"({a}, '{b}', {c!r})" for a, b, c in some) for some in (rows, shuffled)]
    assert sql(*queries, database=TABLE) == "correct"
    assert (
        sql(f"{queries[0]} LIMIT {len(rows) - 1}" if len(rows) > 1 else "SELECT 1", queries[1], database=TABLE)
        != "correct"
    )
