"""Refreshing a set: proposed with reasons, published on confirmation, the old revision left as it was."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from sqlalchemy import select

from envsdk.authoring.declare import declarations
from envsdk.authoring.families import Family
from envsdk.errors import UsageError
from registry.calibration.campaign import Measured
from registry.calibration.rising import Rising
from registry.db import Item, Proposal
from registry.refresh.carry_out import find_replacements, proposal_body, store_proposal
from registry.refresh.job import propose_refresh
from registry.refresh.levels import Seen, _Likelihood, fit_levels
from registry.refresh.proposal import choose_levels, plan_refresh
from registry.refresh.publish import dismiss_proposal, publish_proposal
from registry.revisions import add_revision, entries_of, set_digest
from tests.fakes import adding


@pytest.fixture
def families():
    return {one.name: Family(one) for one in declarations() if one.function is adding.adding}


@pytest.fixture
def grown(registry, families, make_report, make_record, tmp_path):
    """A set of six one-digit tasks, five of which the policy has saturated, and some outcomes at other levels."""
    draw = families["adding"].draw
    easy = [draw(seed=seed, level={"digits": 1}, dest=tmp_path / f"easy{seed}") for seed in range(6)]
    middle = [draw(seed=seed, level={"digits": 2}, dest=tmp_path / f"middle{seed}") for seed in range(6)]
    hard = [draw(seed=seed, level={"digits": 3}, dest=tmp_path / f"hard{seed}") for seed in range(6)]
    registry.push(easy + middle + hard, [make_report(task) for task in easy + middle + hard])
    registry.resolve("status:checked", name="everything")
    registry.append([make_record(task, True) for task in easy[:5] for _ in range(12 + 36)])
    registry.append([make_record(task, bool(n % 2)) for task in middle for n in range(8)])
    registry.append([make_record(task, False) for task in hard for _ in range(12)])
    with registry.database.writing() as session:
        ids = _ids(session, easy)
        add_revision(session, "sums", ids, digest=set_digest(entries_of(session, ids)))
    return registry


def outcome_of(task, verdict, mean, low, high, *, n):
    """What measuring came to."""
    return Measured(
        task.slug,
        task.digests.task,
        task.digests.verifier,
        verdict=verdict,
        likeliest="learnable" if verdict == "uncertain" else verdict,
        chance=0.9,
        mean=mean,
        low=low,
        high=high,
        n=n,
        ungraded=0,
    )


def _ids(session, tasks):
    return [session.scalar(select(Item.id).where(Item.task_digest == task.digests.task)) for task in tasks]


def propose(registry, families, make_report, tmp_path, **options):
    async def check(task):
        return make_report(task)

    async def go():
        with registry.database.reading() as session:
            plan = plan_refresh(session, "sums", families=families)
        found, refused = await find_replacements(
            registry, plan, families=families, folder=tmp_path / "drawn", **({"check": check} | options)
        )
        with registry.database.writing() as session:
            body = proposal_body(plan, found, refused)
            return store_proposal(session, plan, body).id, body

    return asyncio.run(go())


def test_the_saturated_go_and_one_without_evidence_stays(grown, families):
    with grown.database.reading() as session:
        plan = plan_refresh(session, "sums", families=families)
    assert [(one.why, one.n) for one in plan.retire] == [("saturated", 48)] * 5
    assert len(plan.kept) == 1


def test_replacements_are_planned_where_the_pass_rate_is_in_the_band(grown, families):
    with grown.database.reading() as session:
        plan = plan_refresh(session, "sums", families=families)
    assert [(one.level, one.why) for one in plan.draw] == [({"digits": 2}, "in_band")] * 5


def test_a_broken_task_goes_whatever_its_pass_rate(grown, families, make_record, tmp_path):
    item = grown.query("set:sums status:checked").items[0]
    task = grown.fetch(item.task_digest, item.verifier_digest, tmp_path / "fetched")
    grown.append([make_record(task, None, cause="verifier_crash") for _ in range(3)])
    with grown.database.reading() as session:
        plan = plan_refresh(session, "sums", families=families)
    assert {one.why for one in plan.retire} == {"saturated", "broken"}


def test_how_many_are_wanted_is_told_before_the_first_is_found(grown, families, make_report, tmp_path):
    told = []
    propose(grown, families, make_report, tmp_path, heard=lambda found, wanted: told.append((found, wanted)))
    assert told == [(0, 5), (5, 5)]


def test_nothing_changes_until_it_is_published(grown, families, make_report, tmp_path):
    before = grown.revision("sums")
    propose(grown, families, make_report, tmp_path)
    assert grown.revision("sums") == before


def test_publishing_makes_a_new_revision_and_keeps_the_old(grown, families, make_report, tmp_path):
    before = grown.revision("sums")
    number, body = propose(grown, families, make_report, tmp_path)
    with grown.database.writing() as session:
        publish_proposal(session, number, by="me")
    after = grown.revision("sums")
    assert (after.revision, len(after.items), body["size_after"]) == (2, 6, 6)
    assert grown.revision("sums@1").items == before.items


@pytest.mark.parametrize("which", ["kept", "add"])
def test_what_broke_after_the_proposal_is_not_published(grown, families, make_report, make_record, tmp_path, which):
    number, body = propose(grown, families, make_report, tmp_path)
    digest = (
        body["add"][0]["task_digest"] if which == "add" else grown.query("set:sums status:checked").items[0].task_digest
    )
    [item] = [one for one in grown.query("limit:500").items if one.task_digest == digest]
    task = grown.fetch(item.task_digest, item.verifier_digest, tmp_path / "fetched")
    grown.append([make_record(task, None, cause="verifier_crash") for _ in range(3)])
    with grown.database.writing() as session:
        revision = publish_proposal(session, number, by="me")
        assert revision.note["left_out"] == [item.slug]
    assert item.slug not in {one.slug for one in grown.revision("sums").items}


def test_the_retired_are_retired_for_that_policy(grown, families, make_report, tmp_path):
    number, _ = propose(grown, families, make_report, tmp_path)
    with grown.database.writing() as session:
        publish_proposal(session, number, by="me")
    assert grown.query("status:retired").total == 5


def test_a_retired_task_that_fails_again_comes_back(grown, families, make_report, make_record, tmp_path):
    number, body = propose(grown, families, make_report, tmp_path)
    with grown.database.writing() as session:
        publish_proposal(session, number, by="me")
    one = body["retire"][0]
    task = grown.fetch(one["task_digest"], one["verifier_digest"], tmp_path / "again")
    grown.append([make_record(task, False) for _ in range(3)])
    assert grown.query("status:retired").total == 4


def test_a_draw_that_fails_its_checks_is_refused_with_the_reason(grown, families, make_report, tmp_path):
    async def failing(task):
        return make_report(task, noop="fail")

    _, body = propose(grown, families, make_report, tmp_path, check=failing)
    assert body["add"] == []
    assert {one["why"] for one in body["refused"]} == {"check_fail"}


def test_a_draw_that_measures_too_hard_is_drawn_again(grown, families, make_report, tmp_path):
    calls = []

    async def measuring(tasks):
        calls.append(len(tasks))
        verdict = "too_hard" if len(calls) == 1 else "learnable"
        return [outcome_of(t, verdict, 0.5, 0.2, 0.8, n=4) for t in tasks]

    _, body = propose(grown, families, make_report, tmp_path, measure=measuring)
    assert calls == [5, 5]
    assert len(body["add"]) == 5
    assert [one["why"] for one in body["refused"]] == ["too_hard"] * 5


def test_what_was_drawn_and_came_out_wrong_is_learned_from_before_the_next_draw(
    registry, families, make_report, make_record, tmp_path
):
    """Only one digit was ever tried. Draws of two turn out as easy, those of three as half: no more of two are drawn."""
    easy = [families["adding"].draw(seed=n, level={"digits": 1}, dest=tmp_path / f"easy{n}") for n in range(6)]
    registry.push(easy, [make_report(task) for task in easy])
    registry.append([make_record(task, True) for task in easy for _ in range(48)])
    registry.resolve("", name="sums")
    rounds = []

    async def measuring(tasks):
        digits = {task.digests.task: task.spec.level["digits"] for task in tasks}
        rounds.append(sorted(set(digits.values())))
        registry.append([make_record(t, digits[t.digests.task] < 3 or n % 2 == 0) for t in tasks for n in range(32)])
        return [
            outcome_of(t, verdict, 0.5, 0.2, 0.8, n=32)
            for t in tasks
            for verdict in ("learnable" if digits[t.digests.task] == 3 else "saturated",)
        ]

    _, body = propose(registry, families, make_report, tmp_path, measure=measuring)
    assert rounds == [[2, 3], [3]]
    assert [one["planned"]["level"]["digits"] for one in body["add"]] == [3] * 6


@pytest.mark.parametrize(
    ("low", "high", "why"),
    [
        (0.01, 0.15, "below_the_band"),
        (0.85, 0.97, "above_the_band"),
        (0.01, 0.21, ""),
        (0.79, 0.97, ""),
        (0.3, 0.6, ""),
    ],
)
def test_a_draw_whose_interval_lies_outside_the_band_will_not_do(
    grown, families, make_report, tmp_path, low, high, why
):
    async def measuring(tasks):
        return [outcome_of(t, "uncertain", (low + high) / 2, low, high, n=32) for t in tasks]

    _, body = propose(grown, families, make_report, tmp_path, measure=measuring)
    assert {one["why"] for one in body["refused"]} == ({why} if why else set())
    assert len(body["add"]) == (0 if why else 5)


def test_a_task_of_no_installed_family_is_named_as_not_replaced(grown):
    with grown.database.reading() as session:
        plan = plan_refresh(session, "sums", families={})
    assert {one.why for one in plan.not_planned} == {"family_not_installed"}


def test_a_proposal_about_an_older_revision_is_stale(grown, families, make_report, tmp_path):
    number, _ = propose(grown, families, make_report, tmp_path)
    other, _ = propose(grown, families, make_report, tmp_path)
    with grown.database.writing() as session:
        publish_proposal(session, other, by="me")
    with pytest.raises(UsageError) as caught, grown.database.writing() as session:
        publish_proposal(session, number, by="me")
    assert caught.value.code == "stale_proposal"


def test_a_dismissed_proposal_cannot_be_published(grown, families, make_report, tmp_path):
    number, _ = propose(grown, families, make_report, tmp_path)
    with grown.database.writing() as session:
        dismiss_proposal(session, number, by="me")
    with pytest.raises(UsageError) as caught, grown.database.writing() as session:
        publish_proposal(session, number, by="me")
    assert caught.value.code == "closed_proposal"


def test_who_decided_and_when_is_kept(grown, families, make_report, tmp_path):
    first, _ = propose(grown, families, make_report, tmp_path)
    second, _ = propose(grown, families, make_report, tmp_path / "second")
    with grown.database.writing() as session:
        dismiss_proposal(session, first, by="ann")
        publish_proposal(session, second, by="b" * 300)
    with grown.database.reading() as session:
        kept = [session.get_one(Proposal, number) for number in (first, second)]
        assert [(one.state, one.decided_by) for one in kept] == [("dismissed", "ann"), ("published", "b" * 200)]
        assert all(one.decided_at >= one.created_at for one in kept)


def test_where_nothing_is_worn_out_nothing_is_stored(registry, make_task, make_report, make_record, tmp_path):
    task = make_task("a")
    registry.push([task], [make_report(task)])
    registry.append([make_record(task, n % 2 == 0) for n in range(8)])
    registry.resolve("", name="mixed")
    number, body = asyncio.run(propose_refresh(registry, "mixed", folder=tmp_path))
    assert (number, body["retire"], body["size_before"], body["size_after"]) == (None, [], 1, 1)
    with registry.database.reading() as session:
        assert session.scalars(select(Proposal.id)).all() == []


def test_a_task_that_wore_out_without_a_family_is_proposed_to_go(grown, tmp_path):
    number, body = asyncio.run(propose_refresh(grown, "sums", folder=tmp_path))
    assert number is not None
    assert ([one["why"] for one in body["not_replaced"]], body["size_after"]) == (["family_not_installed"] * 5, 1)


def test_a_set_that_is_not_there_is_named(registry, families):
    with pytest.raises(UsageError) as caught, registry.database.reading() as session:
        plan_refresh(session, "nothing", families=families)
    assert caught.value.code == "unknown_set"


def test_predictions_fall_with_the_level_that_makes_tasks_harder():
    seen = [Seen({"n": n}, passes=8 - 2 * n, trials=8) for n in range(5) for _ in range(4)]
    model = fit_levels(seen)
    means = [model.predict({"n": n}).mean for n in range(5)]
    assert means == sorted(means, reverse=True)


def test_texts_and_flags_are_levels_too():
    seen = [
        Seen({"kind": kind, "long": long}, 8.0 * (kind == "easy"), 8.0)
        for kind in ("easy", "hard")
        for long in (True, False)
    ]
    model = fit_levels(seen * 4)
    assert (
        model.predict({"kind": "easy", "long": True}).mean
        > 0.7
        > 0.3
        > model.predict({"kind": "hard", "long": True}).mean
    )


LEVELS = [{"skill": skill} for skill in ("print", "look", "join")]
NUMBERS = [{"n": n} for n in (1, 4, 30, 200)]


@pytest.mark.parametrize(("levels", "drawn"), [(LEVELS, LEVELS[0]), (NUMBERS, NUMBERS[0])])
def test_of_a_level_that_was_never_drawn_little_is_known(levels, drawn):
    model = fit_levels([Seen(drawn, 60, 64) for _ in range(12)], levels=levels)
    seen, *others = [model.predict(level) for level in levels]
    assert seen.high - seen.low < 0.2
    for other in others[-1:] if levels is NUMBERS else others:
        assert other.high - other.low > 0.5
        assert other.in_band > seen.in_band


def test_which_value_was_drawn_says_nothing_about_the_others_among_themselves():
    model = fit_levels([Seen(LEVELS[1], 60, 64) for _ in range(12)], levels=LEVELS)
    first, _, last = (model.predict(level) for level in LEVELS)
    assert (first.mean, first.low, first.high) == pytest.approx((last.mean, last.low, last.high), abs=0.03)


def test_a_policy_far_from_the_authors_guess_is_as_far_from_it_elsewhere():
    guesses = {"print": 0.3, "look": 0.05, "join": 0.02}
    guess = lambda level: guesses[level["skill"]]  # noqa: E731
    before = fit_levels([], levels=LEVELS, guess=guess)
    after = fit_levels([Seen(LEVELS[0], 60, 64) for _ in range(12)], levels=LEVELS, guess=guess)
    for level in LEVELS[1:]:
        assert after.predict(level).mean > before.predict(level).mean + 0.05
    means = [after.predict(level).mean for level in LEVELS]
    assert means == sorted(means, reverse=True)


def test_enough_outcomes_outweigh_any_guess():
    seen = [Seen({"n": n}, 16 * n, 64) for n in (1, 3) for _ in range(12)]
    model = fit_levels(seen, guess=lambda level: 0.8 if level["n"] == 1 else 0.3)
    assert model.predict({"n": 1}).mean == pytest.approx(0.25, abs=0.08)
    assert model.predict({"n": 3}).mean == pytest.approx(0.75, abs=0.08)


def test_without_outcomes_every_level_is_as_likely():
    choices = choose_levels(fit_levels([]), [{"n": 1}, {"n": 2}])
    assert [why for _, _, why in choices] == ["no_outcomes", "no_outcomes"]
    assert choices[0][1] == choices[1][1]


def test_levels_nobody_met_are_ordered_by_the_authors_guess():
    guesses = {1: 0.95, 2: 0.55, 3: 0.1}
    choices = choose_levels(
        fit_levels([]), [{"digits": digits} for digits in guesses], guess=lambda level: guesses[level["digits"]]
    )
    assert [(level["digits"], why) for level, _, why in choices] == [
        (2, "authors_guess"),
        (3, "authors_guess"),
        (1, "authors_guess"),
    ]


def test_an_outcome_outweighs_the_authors_guess():
    model = fit_levels([Seen({"digits": 1}, 5, 10), Seen({"digits": 3}, 0, 10)])
    (level, _, why), *_ = choose_levels(model, [{"digits": 1}, {"digits": 3}], guess=lambda level: level["digits"] / 6)
    assert (level, why) == ({"digits": 1}, "in_band")


def test_an_interval_widens_where_draws_of_one_level_differ():
    alike = fit_levels([Seen({"n": 1}, 4, 8) for _ in range(20)]).predict({"n": 1})
    apart = fit_levels([Seen({"n": 1}, 8 * (i % 2), 8) for i in range(20)]).predict({"n": 1})
    assert apart.high - apart.low > 1.5 * (alike.high - alike.low)


def test_its_gradient_and_curvature_are_those_of_its_value():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(12), rng.normal(size=(12, 2))])
    n = rng.integers(1, 9, 12).astype(float)
    k = np.floor(rng.random(12) * (n + 1)).clip(0, n)
    likelihood = _Likelihood(x, rng.normal(size=12), Rising.of(k), Rising.of(n - k), Rising.of(n))
    point, step = rng.normal(size=4), 1e-5
    for axis in range(4):
        shift = np.eye(4)[axis] * step
        (up, grad_up), (down, grad_down) = likelihood(point + shift), likelihood(point - shift)
        assert likelihood(point)[1][axis] == pytest.approx((up - down) / (2 * step), abs=1e-6)
        np.testing.assert_allclose(likelihood.curvature(point)[axis], (grad_up - grad_down) / (2 * step), atol=1e-6)


def interrupted(grown, families, make_report, make_record, tmp_path, *, passed):
    """A refresh that is cancelled while it measures; what it drew, each with episodes that ended as ``passed`` says."""
    drawn = []

    async def cancelled(tasks):
        drawn.extend(tasks)
        records = [make_record(task, one) for task in tasks for one in passed]
        grown.append(records, run="refresh-sums-1")
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        propose(grown, families, make_report, tmp_path, measure=cancelled)
    return [task.digests.task for task in drawn]


async def measured_as_mixed(tasks):
    return [outcome_of(task, "learnable", 0.5, 0.3, 0.7, n=4) for task in tasks]


def test_an_interrupted_refresh_goes_on_with_what_it_drew(grown, families, make_report, make_record, tmp_path):
    drawn = interrupted(grown, families, make_report, make_record, tmp_path, passed=(True, False))
    before = grown.query("").total
    _, body = propose(grown, families, make_report, tmp_path / "again", measure=measured_as_mixed)
    assert [one["task_digest"] for one in body["add"]] == drawn
    assert grown.query("").total == before


def test_what_it_found_too_hard_is_drawn_anew(grown, families, make_report, make_record, tmp_path):
    drawn = interrupted(grown, families, make_report, make_record, tmp_path, passed=(False,) * 12)
    _, body = propose(grown, families, make_report, tmp_path / "again", measure=measured_as_mixed)
    assert len(body["add"]) == 5
    assert not {one["task_digest"] for one in body["add"]} & set(drawn)


def test_tasks_that_others_pushed_are_never_taken_for_replacements(grown, families, make_report, make_record, tmp_path):
    """A held-out task of the same family and level is in the registry and in no set; it stays out."""
    draw = families["adding"].draw
    held_out = [draw(seed=900 + n, level={"digits": 2}, dest=tmp_path / f"held-out{n}") for n in range(6)]
    grown.push(held_out, [make_report(task) for task in held_out])
    grown.append([make_record(task, bool(n % 2)) for task in held_out for n in range(4)], run="evaluation")
    _, body = propose(grown, families, make_report, tmp_path, measure=measured_as_mixed)
    added = {one["task_digest"] for one in body["add"]}
    assert not added & {task.digests.task for task in held_out}
