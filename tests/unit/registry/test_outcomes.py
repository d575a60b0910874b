"""Appending outcomes: each episode once, nothing lost, nothing absent counted as a zero."""

from __future__ import annotations

import json
import math

import pytest
from sqlalchemy import func, select

from envsdk.episode.record import EpisodeRecord
from registry.db import Episode, Lineage, Policy
from registry.ledger_line import read_line
from registry.outcomes import append_lines, unpacked


def the_item(registry):
    return registry.query("").items[0]


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a", tags=("shell",))
    registry.push([made], [make_report(made)])
    return made


def test_numbers_add_up_to_what_was_sent(registry, task, make_task, make_record):
    records = [
        make_record(task, True, episode_id="one"),
        make_record(task, True, episode_id="one"),
        make_record(make_task("elsewhere"), True),
    ]
    result = registry.append(records)
    assert (result.accepted, result.duplicate, [r.code for r in result.rejected]) == (1, 1, ["unknown_digest"])


def test_the_same_episode_twice_is_counted_once(registry, task, make_record):
    record = make_record(task, True)
    registry.append([record])
    assert registry.append([record]).duplicate == 1
    assert the_item(registry).n == 1


def test_an_ungraded_episode_enters_coverage_and_nothing_else(registry, task, make_record):
    registry.append([make_record(task, None)])
    item = the_item(registry)
    assert (item.n, item.ungraded, item.status) == (0, 1, "checked")


def test_the_first_graded_outcome_starts_calibrating(registry, task, make_record):
    registry.append([make_record(task, True)])
    item = the_item(registry)
    assert (item.status, item.n, item.policy) == ("calibrating", 1, "small")
    assert item.p == pytest.approx(1.15 / 1.38)


def test_alternating_outcomes_become_learnable(registry, task, make_record):
    registry.append([make_record(task, bool(i % 2)) for i in range(4)])
    assert the_item(registry).status == "learnable"


def test_only_failures_become_too_hard(registry, task, make_record):
    registry.append([make_record(task, False) for _ in range(12)])
    assert the_item(registry).status == "too_hard"


@pytest.mark.parametrize(("passes", "status"), [(12, "saturating"), (11 + 32, "saturating"), (12 + 32, "saturated")])
def test_only_passes_saturate_and_32_more_confirm(registry, task, make_record, passes, status):
    registry.append([make_record(task, True) for _ in range(passes)])
    assert the_item(registry).status == status


def test_three_failed_retests_reopen_what_was_saturated(registry, task, make_record):
    registry.append([make_record(task, True) for _ in range(44)] + [make_record(task, False) for _ in range(3)])
    item = the_item(registry)
    assert (item.status, item.n) == ("calibrating", 0)


def test_draft_hides_the_phase_but_not_the_evidence(registry, make_task, make_report, make_record):
    task = make_task("b")
    registry.push([task])
    registry.append([make_record(task, bool(i % 2)) for i in range(4)])
    assert (the_item(registry).status, the_item(registry).n) == ("draft", 4)
    registry.push([], [make_report(task)])
    assert the_item(registry).status == "learnable"


def test_three_verifier_errors_in_a_row_break_the_item(registry, task, make_record):
    registry.append([make_record(task, None, cause="verifier_crash") for _ in range(3)])
    assert the_item(registry).broken


@pytest.mark.parametrize("cause", ["host_lost", "verifier_setup", "judge_failed"])
def test_failures_of_the_machinery_do_not(registry, task, make_record, cause):
    registry.append([make_record(task, None, cause=cause) for _ in range(5)])
    assert not the_item(registry).broken


def test_a_graded_outcome_between_starts_the_count_again(registry, task, make_record):
    crashes = [make_record(task, None, cause="verifier_crash") for _ in range(4)]
    registry.append([*crashes[:2], make_record(task, True), *crashes[2:]])
    assert not the_item(registry).broken


def test_the_oracle_is_evidence_on_the_verifier_alone(registry, task, make_record):
    registry.append([make_record(task, False, lineage="oracle")])
    item = the_item(registry)
    assert (item.broken, item.n, item.policy) == (True, 0, "")


def test_lineages_are_kept_apart(registry, task, make_record):
    registry.append([make_record(task, True, lineage="small") for _ in range(2)])
    registry.append([make_record(task, False, lineage="large") for _ in range(12)])
    assert registry.query("policy:small").items[0].n == 2
    assert registry.query("policy:large").items[0].status == "too_hard"


def test_a_policy_without_a_name_makes_no_lineage(registry, task, make_record):
    registry.append([make_record(task, True, lineage="first"), make_record(task, None, lineage="", cause="cancelled")])
    with registry.database.reading() as session:
        assert list(session.scalars(select(Lineage.name))) == ["first"]


def test_the_first_lineage_measured_is_the_reference(registry, task, make_record):
    registry.append([make_record(task, False, lineage="oracle"), make_record(task, True, lineage="first")])
    registry.append([make_record(task, True, lineage="second")])
    assert the_item(registry).policy == "first"


def test_a_lineage_of_which_nothing_was_graded_gives_way_to_the_next(registry, task, make_record):
    registry.append([make_record(task, None, lineage="unreachable") for _ in range(4)])
    assert the_item(registry).policy == "unreachable"
    registry.append([make_record(task, True, lineage="second")])
    assert (the_item(registry).policy, the_item(registry).n) == ("second", 1)
    registry.append([make_record(task, True, lineage="third")])
    assert the_item(registry).policy == "second"


def test_the_first_of_a_batch_stays_the_reference(registry, task, make_record):
    registry.append([make_record(task, True, lineage="first"), make_record(task, True, lineage="second")])
    assert the_item(registry).policy == "first"


def test_a_new_lineage_sees_every_task(registry, task, make_task, make_record):
    other = make_task("other")
    registry.push([other])
    registry.append([make_record(task, True, lineage="first")])
    registry.append([make_record(task, True, lineage="second")])
    assert {item.slug: item.n for item in registry.query("policy:second").items} == {"a": 1, "other": 0}
    assert registry.query("policy:second tag:shell").total == 1


def test_counts_decay_with_every_weight_version(registry, task, make_record):
    registry.append([make_record(task, True, version=0) for _ in range(4)])
    registry.append([make_record(task, False, version=5) for _ in range(4)])
    pair = (task.digests.task, task.digests.verifier)
    posterior = registry.posteriors([pair], lineage="small")[pair]
    assert posterior.alpha == pytest.approx(0.15 + 4 * 0.9**5)
    assert posterior.beta == pytest.approx(0.23 + 4)


def test_an_outcome_of_an_older_version_decays_nothing(registry, task, make_record):
    registry.append([make_record(task, True, version=5), make_record(task, True, version=2)])
    pair = (task.digests.task, task.digests.verifier)
    assert registry.posteriors([pair])[pair].alpha == pytest.approx(2.15)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_not_a_number_is_rejected(registry, task, make_record, bad):
    record = make_record(task, True)
    record = record.model_copy(update={"outcome": record.outcome.model_copy(update={"reward": bad})})
    assert [r.code for r in registry.append([record]).rejected] == ["not_a_number"]
    assert the_item(registry).n == 0


def test_graded_without_a_reward_is_rejected(registry, task, make_record):
    record = make_record(task, True)
    record = record.model_copy(update={"outcome": record.outcome.model_copy(update={"reward": None})})
    assert [r.code for r in registry.append([record]).rejected] == ["graded_without_reward"]


def test_a_clock_that_runs_back_changes_no_estimate(registry, task, make_record):
    registry.append([make_record(task, True, started_at=5_000.0), make_record(task, True, started_at=1.0)])
    assert the_item(registry).n == 2


def test_a_posterior_of_an_unmeasured_lineage_is_the_prior(registry, task):
    pair = (task.digests.task, task.digests.verifier)
    posterior = registry.posteriors([pair], lineage="never-seen")[pair]
    assert (posterior.n, posterior.alpha, posterior.beta, posterior.status) == (0, 0.15, 0.23, "checked")


def test_ledger_lines_are_read_and_bad_ones_named(registry, task, make_record):
    good = make_record(task, True).model_dump_json()
    lines = [good, "", "{", '{"reward": NaN}', json.dumps({"episode_id": "x"})]
    result = append_lines(registry.database, lines)
    assert result.accepted == 1
    assert [(r.which, r.code) for r in result.rejected] == [
        ("line 3", "invalid_record"),
        ("line 4", "not_a_number"),
        ("line 5", "invalid_record"),
    ]


def test_an_upload_cut_off_in_the_middle_is_finished_by_sending_it_again(
    sqlite_registry, make_task, make_record, monkeypatch
):
    monkeypatch.setattr("registry.outcomes.BATCH", 500)
    task = make_task("a")
    sqlite_registry.push([task])
    records = [make_record(task, True) for _ in range(510)]

    def cut_off():
        yield from records[:503]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        sqlite_registry.append(cut_off())
    again = sqlite_registry.append(records)
    assert (again.accepted, again.duplicate) == (10, 500)
    assert the_item(sqlite_registry).n == len(records)


def test_a_line_that_is_deeply_nested_is_no_record():
    rejected = read_line("[" * 100_000, which="line 1")
    assert rejected.code == "invalid_record"


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ('"reward": NaN', "not_a_number"),
        ('"reward": -Infinity', "not_a_number"),
        ('"reward": 1e999', "not_a_number"),
        ('"reward": "NaN"', "not_a_number"),
        ('"reward": "\\ud800"', "invalid_record"),
    ],
)
def test_a_reward_that_is_no_number_is_rejected_whatever_it_hides_in(registry, task, make_record, field, code):
    line = make_record(task, True).model_dump_json().replace('"reward":1.0', field, 1)
    result = append_lines(registry.database, [line, make_record(task, True).model_dump_json()])
    assert (result.accepted, [r.code for r in result.rejected]) == (1, [code])


@pytest.mark.parametrize("text", ["NaN", "Infinity is a word", "\\ud83d\\ude00"])
def test_words_that_look_like_no_number_are_text(registry, task, make_record, text):
    line = make_record(task, True, group_id="here").model_dump_json().replace('"here"', f'"{text}"')
    assert append_lines(registry.database, [line]).accepted == 1


def test_a_lone_half_of_a_character_rejects_its_line_and_no_other(registry, task, make_record):
    line = make_record(task, True, group_id="here").model_dump_json().replace('"here"', '"\\ud800"')
    result = append_lines(registry.database, [line, make_record(task, True).model_dump_json()])
    assert (result.accepted, [(r.which, r.code) for r in result.rejected]) == (1, [("line 1", "invalid_record")])


@pytest.mark.parametrize("line", ["", "   ", "\n", "null", "[]", "3", '"x"', "{}", b"\xff\xfe", "{" * 5_000])
def test_a_line_that_is_no_episode_is_named_or_passed_over(registry, task, line):
    result = append_lines(registry.database, [line])
    assert result.accepted == 0
    assert len(result.rejected) == (1 if line.strip() else 0)


def test_a_lines_record_is_kept_as_it_was_sent(registry, task, make_record):
    record = make_record(task, True)
    append_lines(registry.database, [record.model_dump_json() + "\r\n"])
    with registry.database.reading() as session:
        assert EpisodeRecord.model_validate_json(unpacked(session.scalar(select(Episode.record)))) == record


def test_lines_and_records_of_one_policy_are_one_policy(registry, task, make_record):
    registry.append([make_record(task, True)])
    append_lines(registry.database, [make_record(task, True).model_dump_json()])
    with registry.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Policy)) == 1


def test_one_that_cannot_be_counted_does_not_stand_in_for_another_of_its_name(registry, task, make_record):
    bad = make_record(task, True, episode_id="same", started_at=float("nan"))
    result = registry.append([bad, make_record(task, True, episode_id="same")])
    assert (result.accepted, result.duplicate, [one.code for one in result.rejected]) == (1, 0, ["not_a_number"])
