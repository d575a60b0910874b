"""Compile a query to parameterised SQL over the denormalised index.

A query walks one index in the order it asks for and stops after a page: ``standing_tag`` where it names a tag or
family (the rarest one it names), else ``standing``. Where it holds a word that fewer items contain, it starts from
those items instead and sorts what is left. Everything else is checked row by row on the way. No value of the query
ever becomes SQL text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, exists, false, not_, or_, select, tuple_
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.bulk import is_one_of
from registry.db import Item, ItemTag, Lineage, SetItem, Standing, StandingTag, Tag, TaskSet
from registry.query.ast import Query, Term
from registry.query.errors import QueryError, suggestion
from registry.query.words import few_ids
from registry.revisions import find_revision

# Tables, not mapped classes: a query makes no objects, and plain columns cost half as much to compile.
_ITEM, _ITEM_TAG, _TAG = Item.__table__.c, ItemTag.__table__.c, Tag.__table__.c
_STANDING, _STANDING_TAG, _LINEAGE = Standing.__table__.c, StandingTag.__table__.c, Lineage.__table__.c
_SET, _SET_ITEM = TaskSet.__table__.c, SetItem.__table__.c
_REFERENCE = select(_LINEAGE.id, _LINEAGE.name).where(_LINEAGE.is_reference)
_TAG_KINDS = {"tag": "tag", "family": "family"}


@dataclass(frozen=True, slots=True)
class Selection:
    """A compiled query: which rows, in which order.

    Attributes:
        lineage_id, policy: whose standings. nothing: no row can match, so no SQL need run.
        ids: selects (item id, sort value) of every match, unordered and unbounded.
        order: the sort column. descending: its direction, and the tie-breaker's.
    """

    lineage_id: int
    policy: str
    ids: Select[Any]
    item_id: ColumnElement[int]
    order: ColumnElement[Any]
    descending: bool
    nothing: bool = False

    def page(self, size: int, after: tuple[Any, int] | None) -> Select[Any]:
        """The ids of one page, in order, beginning after the (sort value, item id) of the last row before it."""
        statement = self.ids
        if after is not None:
            here, there = tuple_(self.order, self.item_id), tuple_(*after)
            statement = statement.where(here < there if self.descending else here > there)
        keys = (self.order, self.item_id)
        ordered = statement.order_by(*(key.desc() if self.descending else key.asc() for key in keys))
        return ordered.limit(size)


def compile_query(session: Session, query: Query) -> Selection:
    """Look up the names in ``query`` and compile it.

    Raises:
        QueryError: a policy or a set that is not here.
    """
    lineage, name = _lineage(session, query.policy)
    tags = _find_tags(session, query.terms)
    driver = _driver(query.terms, tags)
    listed = _rarest_word(session, query.terms)
    if listed is not None and driver is not None and tags[driver].items <= len(listed.ids):
        listed = None
    elif listed is not None:
        driver = None
    table = Standing.__table__ if driver is None else StandingTag.__table__
    rows = table.c
    # With a list to start from, no bare column: an index that begins with it would be walked, and the list looked
    # for along the way.
    conditions: list[ColumnElement[bool]] = [(rows.lineage_id if listed is None else rows.lineage_id + 0) == lineage]
    if listed is not None:
        conditions.append(is_one_of(session, rows.item_id, listed.ids))
    if driver is not None:
        conditions.append(_STANDING_TAG.tag_id == tags[driver].id)
    needs_item, needs_standing = False, False
    for term in query.terms:
        if term is driver or (listed is not None and term is listed.term):
            continue
        condition, needs = _condition(session, term, table, tags)
        conditions.append(not_(condition) if term.negated else condition)
        needs_item |= needs == "item"
        needs_standing |= needs == "standing"
    order: Any = {
        "learnability": rows.learnability,
        "p": rows.mean,
        "n": _STANDING.n,
        "updated": _STANDING.updated_at,
        "slug": _ITEM.slug,
    }[query.sort.key]
    needs_item |= query.sort.key == "slug"
    needs_standing |= query.sort.key in {"n", "updated"}
    source: FromClause = table
    if needs_item:
        source = source.join(Item.__table__, _ITEM.id == rows.item_id)
    if needs_standing and driver is not None:
        source = source.join(
            Standing.__table__, and_(_STANDING.lineage_id == rows.lineage_id, _STANDING.item_id == rows.item_id)
        )
    ids = select(rows.item_id.label("item_id"), order.label("sort_value")).select_from(source).where(*conditions)
    nothing = (listed is not None and not listed.ids) or any(_matches_nothing(term, tags) for term in query.terms)
    return Selection(lineage, name, ids, rows.item_id, order, query.sort.descending, nothing)


def find_lineage(session: Session, policy: Term | None) -> int:
    """Id of the lineage that a ``policy:`` term names (a whole name, or the only one that begins with it or holds it).

    Without a term, the reference lineage; -1 where nothing was ever pushed, which matches no row.

    Raises:
        QueryError: no lineage or several go by that name.
    """
    return _lineage(session, policy)[0]


def _lineage(session: Session, policy: Term | None) -> tuple[int, str]:
    if policy is None:
        reference = session.execute(_REFERENCE).first()
        return (-1, "") if reference is None else (reference.id, reference.name)
    wanted = policy.values[0].lower()
    rows = session.execute(select(_LINEAGE.name, _LINEAGE.id).where(_LINEAGE.name != ""))
    known: dict[str, int] = {row.name: row.id for row in rows}
    by_lower = {name.lower(): name for name in known}
    found = [name for lower, name in by_lower.items() if lower == wanted]
    found = found or [name for lower, name in by_lower.items() if lower.startswith(wanted)]
    found = found or [name for lower, name in by_lower.items() if wanted in lower]
    if len(found) == 1:
        return known[found[0]], found[0]
    raise QueryError(
        f"{'several policies go' if found else 'no policy goes'} by {policy.values[0]!r}",
        column=policy.column,
        length=len(policy.values[0]),
        code="query_unknown_policy",
        hint=suggestion(wanted, found or known) if known else "calibrate one first",
    )


@dataclass(frozen=True, slots=True)
class _TagIds:
    """The known tags that a term names: all ids, and the first one's with how many items carry it."""

    ids: tuple[int, ...]
    items: int

    @property
    def id(self) -> int:
        return self.ids[0]


def _find_tags(session: Session, terms: Sequence[Term]) -> dict[Term, _TagIds]:
    mine = [term for term in terms if term.field in _TAG_KINDS]
    if not mine:
        return {}
    pairs = sorted({(_TAG_KINDS[term.field], value) for term in mine for value in term.values})
    found = {
        (row.kind, row.name): row
        for row in session.execute(
            select(_TAG.id, _TAG.kind, _TAG.name, _TAG["items"]).where(
                or_(*(and_(_TAG.kind == kind, _TAG.name == name) for kind, name in pairs))
            )
        )
    }
    result = {}
    for term in mine:
        kind = _TAG_KINDS[term.field]
        rows = [found[kind, value] for value in term.values if (kind, value) in found]
        result[term] = _TagIds(tuple(row.id for row in rows), sum(row.items for row in rows))
    return result


def _driver(terms: Sequence[Term], tags: dict[Term, _TagIds]) -> Term | None:
    able = [term for term in terms if term in tags and not term.negated and len(tags[term].ids) == 1]
    return min(able, key=lambda term: tags[term].items, default=None)


def _matches_nothing(term: Term, tags: dict[Term, _TagIds]) -> bool:
    return term in tags and not term.negated and not tags[term].ids


@dataclass(frozen=True, slots=True)
class _Listed:
    """A word, and the ids of all items that contain it."""

    term: Term
    ids: list[int]


def _rarest_word(session: Session, terms: Sequence[Term]) -> _Listed | None:
    words = [term for term in terms if term.field == "word" and not term.negated]
    listed = [_Listed(term, ids) for term in words if (ids := few_ids(session, term.values[0])) is not None]
    return min(listed, key=lambda one: len(one.ids), default=None)


def _condition(  # noqa: PLR0911 - one return a field
    session: Session, term: Term, table: FromClause, tags: dict[Term, _TagIds]
) -> tuple[ColumnElement[bool], str]:
    """The condition of one term, and the table that it needs beside the driver's."""
    rows = table.c
    match term.field:
        case "status":
            return _one_of(rows.status, term.values), ""
        case "p":
            return _within(rows.mean, term), ""
        case "n":
            return _within(_STANDING.n, term), "standing"
        case "flag":
            columns = {"broken": _ITEM.broken, "flaky": _ITEM.flaky}
            return or_(*(columns[value] for value in term.values)), "item"
        case "verifier":
            return _one_of(_ITEM.verified, term.values), "item"
        case "word":
            return _ITEM.search_text.contains(term.values[0], autoescape=True), "item"
        case "set":
            revisions = [_revision(session, value, term) for value in term.values]
            return (
                exists().where(_SET_ITEM.revision_id.in_(revisions), _SET_ITEM.item_id == rows.item_id).correlate(table)
            ), ""
        case _:
            ids = tags[term].ids
            if not ids:
                return false(), ""
            return exists().where(_ITEM_TAG.item_id == rows.item_id, _ITEM_TAG.tag_id.in_(ids)).correlate(table), ""


def _one_of(column: Any, values: Sequence[str]) -> ColumnElement[bool]:
    # `=` rather than IN lets the planner read the index in order.
    condition: ColumnElement[bool] = column == values[0] if len(values) == 1 else column.in_(values)
    return condition


def _within(column: Any, term: Term) -> ColumnElement[bool]:
    assert term.span is not None
    bounds = []
    if term.span.low is not None:
        bounds.append(column >= term.span.low)
    if term.span.high is not None:
        bounds.append(column <= term.span.high)
    return and_(*bounds)


def _revision(session: Session, value: str, term: Term) -> int:
    try:
        return find_revision(session, value).id
    except UsageError as error:
        names = session.scalars(select(_SET.name).order_by(_SET.name).limit(200)).all()
        near = suggestion(value.partition("@")[0], names) if names else "no set was made yet"
        raise QueryError(
            error.message,
            column=term.column,
            length=len(str(term)),
            code="query_unknown_set",
            hint=error.hint if error.code == "deleted_revision" else near,
        ) from error
