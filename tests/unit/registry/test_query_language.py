"""The query language alone: what parses, what it means, and where a fault is pointed at."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.query import Query, QueryError, Sort, Term, parse
from registry.query.ast import Span
from registry.query.lexer import MAX_LENGTH, MAX_TERMS
from registry.query.parser import FIELDS, FLAGS, SORT_KEYS, VERIFIED
from registry.saturation.states import STATUSES


def test_the_example_of_the_reference():
    query = parse(
        "status:learnable tag:shell -flag:flaky p:0.2..0.8 policy:smollm2 family:arith verifier:checked "
        "sort:-learnability limit:64 free words"
    )
    assert query == Query(
        terms=(
            Term("status", ("learnable",)),
            Term("tag", ("shell",)),
            Term("flag", ("flaky",), negated=True),
            Term("p", span=Span(0.2, 0.8)),
            Term("family", ("arith",)),
            Term("verifier", ("checked",)),
            Term("word", ("free",)),
            Term("word", ("words",)),
        ),
        policy=Term("policy", ("smollm2",)),
        sort=Sort("learnability", descending=True),
        limit=64,
    )


def test_an_empty_query_matches_everything():
    assert parse("  \t ") == Query()


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ('tag:"two words"', Term("tag", ("two words",))),
        ("tag:a,b", Term("tag", ("a", "b"))),
        ('tag:a,"b,c"', Term("tag", ("a", "b,c"))),
        (r'"say \"hi\" \\"', Term("word", ('say "hi" \\',))),
        ("Tag:SHELL", Term("tag", ("shell",))),
        ('-"a:b"', Term("word", ("a:b",), negated=True)),
        ("p:..0.5", Term("p", span=Span(None, 0.5))),
        ("n:8..", Term("n", span=Span(8.0, None))),
        ("set:shell@3", Term("set", ("shell@3",))),
        ("well-known", Term("word", ("well-known",))),
    ],
)
def test_one_term(text, term):
    assert parse(text).terms == (term,)


@pytest.mark.parametrize(
    ("text", "code", "column", "hint"),
    [
        ("tag:a stats:x", "query_unknown_field", 7, "status"),
        ("status:lernable", "query_bad_value", 8, "learnable"),
        ("status:learnable,xbroken", "query_bad_value", 18, "one of"),
        ("flag:flakey", "query_bad_value", 6, "flaky"),
        ("p:0.5", "query_bad_value", 3, "LOW..HIGH"),
        ("p:..", "query_bad_value", 3, "LOW..HIGH"),
        ("p:0.2..1.8", "query_bad_value", 8, "from 0 to 1"),
        ("p:nan..1", "query_bad_value", 3, "number"),
        ("p:0.9..0.1", "query_bad_value", 3, "p:0.1..0.9"),
        ("n:-1..", "query_bad_value", 3, "0 or more"),
        ("sort:learnabilty", "query_bad_value", 6, "learnability"),
        ("limit:0", "query_bad_value", 7, "whole number"),
        ("limit:99999999", "query_bad_value", 7, "whole number"),
        ("limit:1 limit:2", "query_syntax", 9, "keep one"),
        ("-sort:p", "query_syntax", 1, "minus"),
        ("tag:", "query_syntax", 5, "value"),
        ("tag:a,", "query_syntax", 7, "value"),
        ('tag:"a', "query_syntax", 5, "end it"),
        ('""', "query_syntax", 1, "leave"),
        ('a"b"', "query_syntax", 2, "space"),
        ("x" * (MAX_LENGTH + 1), "query_too_long", MAX_LENGTH + 1, "set:"),
        ("a " * (MAX_TERMS + 1), "query_too_long", 2 * MAX_TERMS + 1, ""),
    ],
)
def test_a_fault_is_pointed_at(text, code, column, hint):
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert (caught.value.code, caught.value.column) == (code, column)
    assert hint in caught.value.hint
    assert caught.value.where == f"column {column}"


def test_carets_stand_under_the_fault():
    with pytest.raises(QueryError) as caught:
        parse("tag:a stats:x")
    assert caught.value.pointer("tag:a stats:x").splitlines()[1] == "      ^^^^^"


def fault_of(text):
    """The fault of a text, or `None` where it parses; any other exception is the test's failure."""
    try:
        parse(text)
    except QueryError as error:
        return error
    return None


@given(st.text(max_size=60))
def test_any_text_parses_or_is_a_query_error_within_it(text):
    fault = fault_of(text)
    assert fault is None or 1 <= fault.column <= len(text) + 1


@given(st.text(alphabet='tagsp:".,-\\ 01', max_size=30))
def test_text_of_the_languages_own_characters_too(text):
    fault = fault_of(text)
    if fault is not None:
        assert 1 <= fault.column <= len(text) + 1
    else:
        assert parse(str(parse(text))) == parse(text)


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no query may hold those
TEXTS = st.text(LETTERS, min_size=1, max_size=12).map(str.lower).filter(lambda text: text == text.lower())
ENDS = st.one_of(st.none(), st.floats(0, 1))
SPANS = (
    st.tuples(ENDS, ENDS)
    .filter(lambda ends: ends != (None, None) and (None in ends or ends[0] <= ends[1]))
    .map(lambda ends: Span(*ends))
)
TERMS = st.one_of(
    st.builds(
        Term,
        st.sampled_from(["tag", "family"]),
        st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
        negated=st.booleans(),
    ),
    st.builds(Term, st.just("word"), st.tuples(TEXTS), negated=st.booleans()),
    st.builds(Term, st.just("status"), st.lists(st.sampled_from(STATUSES), min_size=1, max_size=3).map(tuple)),
    st.builds(Term, st.just("flag"), st.tuples(st.sampled_from(FLAGS)), negated=st.booleans()),
    st.builds(Term, st.just("verifier"), st.tuples(st.sampled_from(VERIFIED))),
    st.builds(Term, st.just("p"), span=SPANS, negated=st.booleans()),
)
QUERIES = st.builds(
    Query,
    terms=st.lists(TERMS, max_size=6).map(tuple),
    policy=st.one_of(st.none(), st.builds(Term, st.just("policy"), st.tuples(TEXTS))),
    sort=st.builds(Sort, st.sampled_from(SORT_KEYS), st.booleans()),
    limit=st.one_of(st.none(), st.integers(1, 100_000)),
)


@given(QUERIES)
def test_a_query_written_out_is_read_back_the_same(query):
    assert parse(str(query)) == query


def test_every_field_of_the_language_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "query.md").read_text()
    assert [field for field in FIELDS if f"`{field}:" not in page] == []


@pytest.mark.parametrize(("text", "column"), [("a \udcff", 3), ("tag:a\udcc3", 6), ('"\ud800"', 2)])
def test_a_byte_that_is_no_text_is_pointed_at(text, column):
    with pytest.raises(QueryError, match="no text") as caught:
        parse(text)
    assert caught.value.where == f"column {column}"
