"""Any query against a plain reading of what it means: the same items, order, pages and totals, on both databases."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from registry.bulk import insert_rows
from registry.db import Item, ItemTag, Lineage, SetItem, Standing, StandingTag, Tag
from registry.derive.lineages import FRESH
from registry.query import parse
from registry.query.page import run_query
from registry.revisions import add_revision
from registry.saturation.states import STATUSES

TAGS = ("shell", "text", "odd one", "rare")
FAMILIES = ("", "lines", "words")
WORDS = ("alpha", "beta-gamma", "delta", "epsilon zeta", "100%_")
VERIFIED = ("none", "partial", "checked", "failed")
TASKS = 60
LINEAGES = ("small", "large")


@dataclass(frozen=True)
class Row:
    """One item as this file knows it; ``by`` holds status, mean, n, learnability and date for each lineage."""

    item: int
    slug: str
    family: str
    tags: tuple[str, ...]
    text: str
    verified: str
    broken: bool
    flaky: bool
    in_set: bool
    by: dict[str, tuple[str, float, int, float, float]]


def drawn():
    rng = random.Random(11)
    rows = []
    for item in range(1, TASKS + 1):
        # Few values each, so that ties are common and only the item's number breaks them.
        by = {
            name: (
                rng.choice(STATUSES),
                rng.choice([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]),
                rng.randrange(4),
                rng.choice([0.0, 0.1, 0.2]),
                float(rng.randrange(3)),
            )
            for name in LINEAGES
        }
        tags = tuple(sorted(tag for tag in TAGS if rng.random() < {"rare": 0.05}.get(tag, 0.4)))
        text = " ".join(rng.sample(WORDS, 2))
        rows.append(
            Row(
                item=item,
                slug=f"task-{rng.randrange(20):02}",
                family=rng.choice(FAMILIES),
                tags=tags,
                text=text,
                verified=rng.choice(VERIFIED),
                broken=rng.random() < 0.2,
                flaky=rng.random() < 0.2,
                in_set=rng.random() < 0.5,
                by=by,
            )
        )
    return rows


ROWS = drawn()


@pytest.fixture(scope="module")
def registry(module_registry):
    with module_registry.database.writing() as session:
        insert_rows(session, Item.__table__, [item_row(row) for row in ROWS])
        names = [("tag", name) for name in TAGS] + [("family", name) for name in FAMILIES if name]
        for kind, name in names:
            carried = sum(name in row.tags if kind == "tag" else row.family == name for row in ROWS)
            session.add(Tag(kind=kind, name=name, items=carried))
        for number, name in enumerate(LINEAGES, start=1):
            session.add(Lineage(id=number, name=name, is_reference=number == 1, created_at=0.0))
        session.flush()
        ids = {(kind, name): number for number, kind, name in session.execute(select(Tag.id, Tag.kind, Tag.name))}
        carried = [(row, ids["tag", tag]) for row in ROWS for tag in row.tags]
        carried += [(row, ids["family", row.family]) for row in ROWS if row.family]
        insert_rows(session, ItemTag.__table__, [{"item_id": row.item, "tag_id": tag} for row, tag in carried])
        for number, name in enumerate(LINEAGES, start=1):
            standings = [standing_row(row, number, name) for row in ROWS]
            insert_rows(session, Standing.__table__, standings)
            index = ("lineage_id", "item_id", "status", "learnability", "mean")
            by_item = {standing["item_id"]: {key: standing[key] for key in index} for standing in standings}
            rows = [by_item[row.item] | {"tag_id": tag} for row, tag in carried]
            insert_rows(session, StandingTag.__table__, rows)
        add_revision(session, "half", [row.item for row in ROWS if row.in_set], digest="0" * 64)
        assert session.scalar(select(SetItem.item_id).limit(1)) is not None
    return module_registry


def item_row(row):
    return {
        "id": row.item,
        "task_digest": f"{row.item:064x}",
        "verifier_digest": "0" * 64,
        "slug": row.slug,
        "family": row.family,
        "tags": "[]",
        "spec": "{}",
        "search_text": row.text,
        "package": "0" * 64,
        "verified": row.verified,
        "broken": row.broken,
        "flaky": row.flaky,
        "ungraded_run": 0,
        "created_at": 0.0,
    }


def standing_row(row, number, name):
    status, mean, n, learnability, at = row.by[name]
    values = {"status": status, "mean": mean, "n": n, "learnability": learnability, "updated_at": at}
    return FRESH | values | {"lineage_id": number, "item_id": row.item}


def holds(row, term, lineage):
    status, mean, n, _, _ = row.by[lineage]
    match term.field:
        case "status":
            found = status in term.values
        case "tag":
            found = bool(set(term.values) & set(row.tags))
        case "family":
            found = row.family in term.values
        case "flag":
            found = any({"broken": row.broken, "flaky": row.flaky}[value] for value in term.values)
        case "verifier":
            found = row.verified in term.values
        case "word":
            found = term.values[0] in row.text
        case "set":
            found = row.in_set
        case "p" | "n":
            value = {"p": mean, "n": n}[term.field]
            low, high = term.span.low, term.span.high
            found = (low is None or value >= low) and (high is None or value <= high)
    return found != term.negated


def meant(text):
    """Items that a query means, in order."""
    query = parse(text)
    lineage = "large" if query.policy is not None else "small"
    rows = [row for row in ROWS if all(holds(row, term, lineage) for term in query.terms)]

    def place(row):
        _, mean, n, learnability, at = row.by[lineage]
        keys = {"learnability": learnability, "p": mean, "n": n, "slug": row.slug, "updated": at}
        return keys[query.sort.key], row.item

    ordered = sorted(rows, key=place, reverse=query.sort.descending)
    return [row.item for row in ordered][: query.limit]


def listed(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(
        lambda some: ",".join(f'"{value}"' for value in some)
    )


ends = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
ranges = st.one_of(
    st.tuples(ends, ends).map(lambda pair: f"{min(pair)}..{max(pair)}"),
    ends.map(lambda end: f"{end}.."),
    ends.map(lambda end: f"..{end}"),
)
terms = st.tuples(
    st.sampled_from(["", "", "-"]),
    st.one_of(
        listed(STATUSES).map("status:{}".format),
        listed([*TAGS, "nobody"]).map("tag:{}".format),
        listed(["lines", "words", "nobody"]).map("family:{}".format),
        listed(["broken", "flaky"]).map("flag:{}".format),
        listed(VERIFIED).map("verifier:{}".format),
        ranges.map("p:{}".format),
        st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: f"n:{min(pair)}..{max(pair)}"),
        st.sampled_from([*WORDS, "alp", "eta", "a", "nowhere"]).map('"{}"'.format),
        st.just("set:half"),
    ),
).map("".join)
queries = st.tuples(
    st.lists(terms, max_size=4),
    st.sampled_from(["", "policy:large"]),
    st.sampled_from([""] + [f"sort:{sign}{key}" for sign in ("", "-") for key in ("learnability", "p", "n", "slug")]),
    st.sampled_from(["", "", "limit:1", "limit:7"]),
).map(lambda parts: " ".join([*parts[0], *filter(None, parts[1:])]))

relaxed = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def found_in(registry, text, **options):
    with registry.database.reading() as session:
        return run_query(session, text, **options)


def ids_of(page):
    return [int(item.task_digest, 16) for item in page.items]


@given(queries)
@relaxed
def test_a_query_finds_what_it_means_in_its_order(registry, text):
    page = found_in(registry, text, size=TASKS)
    assert ids_of(page) == meant(text)
    assert (page.total, page.next, page.more) == (len(meant(text)), None, False)


@given(queries, st.integers(1, 9))
@relaxed
def test_pages_put_together_are_the_whole(registry, text, size):
    found, cursor = [], None
    for _ in range(math.ceil(TASKS / size) + 1):
        page = found_in(registry, text, size=size, cursor=cursor)
        assert page.total == len(meant(text))
        found += ids_of(page)
        cursor = page.next
        if cursor is None:
            break
    assert found == meant(text)


@given(queries)
@relaxed
def test_an_exact_total_is_the_number_of_results(registry, text):
    assert found_in(registry, text, size=1, exact_total=True).total == len(meant(text))


@given(queries)
@relaxed
def test_a_query_means_the_same_written_out(registry, text):
    assert meant(str(parse(text))) == meant(text)


@given(st.sampled_from(WORDS), st.sampled_from(["", "tag:shell ", "-flag:broken "]), st.integers(0, 4))
@relaxed
def test_what_counts_as_few_changes_no_result(registry, word, others, few):
    text = f'{others}"{word}"'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("registry.query.words.FEW", few)
        assert ids_of(found_in(registry, text, size=TASKS)) == meant(text)
