"""Values at the ends of what a column holds: the same on both databases, and one bad record never takes others along."""

from __future__ import annotations

import pytest

from envsdk.errors import UsageError
from registry.query import QueryError

LONG = "x" * 5_000
ODD = ["é" * 60, "日本語", "tab\tand\nline", 'it\'s "quoted" \\ %s ? :x', "\u202e\U0001f600", " lead and trail "]


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a", tags=("shell",))
    registry.push([made], [make_report(made)])
    return made


@pytest.mark.parametrize(
    "changed",
    [
        {"episode_id": LONG},
        {"group_id": LONG},
        {"lineage": LONG},
        {"cause": LONG},
        {"episode_id": "nul\0inside"},
        {"group_id": "nul\0inside"},
        {"lineage": "nul\0inside"},
        {"version": 2**40},
        {"version": -(2**40)},
        {"started_at": 1e300},
    ],
    ids=lambda changed: "-".join([*changed, str(next(iter(changed.values())))[:6].replace("\0", "0")]),
)
def test_a_value_that_no_column_holds_rejects_its_record_alone(registry, task, make_record, changed):
    good = [make_record(task, True), make_record(task, False)]
    result = registry.append([good[0], make_record(task, True, **changed), good[1]])
    assert result.accepted + len(result.rejected) == 3
    assert result.accepted >= 2
    assert all(one.code == "invalid_record" for one in result.rejected)
    assert sum(item.n for item in registry.query("").items) in {2, 3}


@pytest.mark.parametrize("text", ODD)
def test_odd_text_comes_back_as_it_went_in(registry, task, make_record, text):
    record = make_record(task, True, episode_id=text, group_id=text, lineage=f"policy {text}")
    assert registry.append([record], run=text).accepted == 1
    assert registry.append([record], run=text).duplicate == 1
    assert registry.query("").items[0].policy == f"policy {text}"


def test_a_runs_name_that_is_too_long_is_refused_before_anything_is_written(registry, task, make_record):
    with pytest.raises(UsageError) as caught:
        registry.append([make_record(task, True)], run=LONG)
    assert caught.value.code == "bad_name"
    assert registry.query("").items[0].n == 0


@pytest.mark.parametrize("text", [*ODD, "nul\0inside"])
def test_an_instruction_may_hold_any_text(registry, make_task, make_report, text, tmp_path):
    task = make_task("odd", instruction=f"Say {text}!\n", description=text.strip())
    result = registry.push([task], [make_report(task)])
    assert [one.slug for one in result.pushed] == ["odd"], result.rejected
    assert registry.fetch(task.digests.task, task.digests.verifier, tmp_path / "out").digests == task.digests


@pytest.mark.parametrize("q", ["\0", 'tag:"\0"', '"a\0b"', "family:\0x", 'policy:"\0"', 'set:"\0"', 'saved:"\0"'])
def test_a_query_with_a_character_that_no_database_holds_is_refused(registry, task, q):
    with pytest.raises(QueryError) as caught:
        registry.query(q)
    assert (caught.value.code, caught.value.column) == ("query_syntax", q.index("\0") + 1)


@pytest.mark.parametrize("tag", [LONG, "nul\0inside"])
def test_a_tag_that_no_column_holds_keeps_its_task_out_and_no_other(registry, make_task, tag):
    try:
        odd = make_task("odd", tags=(tag,))
    except ValueError:
        return  # the format itself has no such tags
    result = registry.push([odd, make_task("even")])
    assert [one.slug for one in result.pushed] == ["even"]
    assert [one.code for one in result.rejected] == ["bad_tag"]
