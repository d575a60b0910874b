"""Screening with episodes: as many as a class needs, appended look by look, and what was spent is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.agents import AnswerAgent
from envsdk.episode.record import PolicyId
from registry.calibration.campaign import Campaign
from registry.calibration.measure import candidates, measure
from registry.saturation.lookahead import HORIZON


@pytest.fixture
def checked(sqlite_registry, make_text_task):
    def push(*slugs):
        tasks = [make_text_task(slug) for slug in slugs]
        reports = [
            CheckReport(
                slug=task.slug,
                task_digest=task.digests.task,
                verifier_digest=task.digests.verifier,
                verdict="pass",
                complete=True,
                checks=(CheckResult(check="oracle", outcome="pass"),),
            )
            for task in tasks
        ]
        assert not sqlite_registry.push(tasks, reports).rejected
        return sqlite_registry

    return push


def saying(answers):
    """Agents of a lineage ``fixed`` that give ``answers``, or those of the task's slug, in turn, over and over."""

    def make(task, place):
        mine = answers[task.slug] if isinstance(answers, dict) else answers
        agent = AnswerAgent(mine[place % len(mine)])
        agent.policy = PolicyId(model="fixed", lineage="fixed")
        return agent

    return make


def run(registry, answers, tmp_path, **options):
    items, _ = candidates(registry, "")
    return asyncio.run(
        measure(
            registry,
            items,
            agent=saying(answers),
            lineage="fixed",
            provider=None,
            folder=tmp_path / "fetched",
            run="screening",
            **options,
        )
    )


def test_a_mixed_task_is_learnable(checked, tmp_path):
    campaign = run(checked("a"), ["yes", "no"], tmp_path)
    assert [(m.verdict, m.likeliest) for m in campaign.measured] == [("learnable", "learnable")]
    assert (campaign.episodes, campaign.fixed) == (campaign.measured[0].n, 32)


@pytest.mark.parametrize(("answer", "verdict"), [("yes", "saturated"), ("no", "too_hard")])
def test_a_constant_one_takes_twelve(checked, tmp_path, answer, verdict):
    campaign = run(checked("a"), [answer], tmp_path)
    assert [(m.verdict, m.n) for m in campaign.measured] == [(verdict, 12)]


def test_what_is_certain_already_costs_nothing(checked, tmp_path):
    registry = checked("a")
    run(registry, ["yes", "no"], tmp_path)
    again = run(registry, ["yes", "no"], tmp_path)
    assert again.episodes == 0
    assert [m.verdict for m in again.measured] == ["learnable"]


def test_every_look_is_in_the_registry(checked, tmp_path):
    registry = checked("a", "b")
    campaign = run(registry, ["yes", "no"], tmp_path)
    assert sum(item.n for item in registry.query("policy:fixed").items) == campaign.episodes
    assert sum(m.n for m in campaign.measured) == campaign.episodes >= 8


def test_what_clear_tasks_save_goes_to_those_near_a_border_and_never_more_than_half_of_a_fixed_number(
    checked, tmp_path
):
    near = ["yes"] + ["no"] * 7
    answers = {"near": near, "near-too": near} | {f"clear{n}": ["yes", "no"] for n in range(4)}
    campaign = run(checked(*answers), answers, tmp_path)
    spent = {m.slug: m.n for m in campaign.measured}
    clear = [n for slug, n in spent.items() if slug.startswith("clear")]
    assert min(spent["near"], spent["near-too"]) > max(clear)
    assert max(spent.values()) <= HORIZON
    assert campaign.episodes == sum(spent.values()) <= campaign.fixed / 2


def test_run_again_a_measured_set_costs_nothing(checked, tmp_path):
    answers = {"near": ["yes"] + ["no"] * 7, "clear": ["yes", "no"], "hard": ["no"]}
    registry = checked(*answers)
    assert run(registry, answers, tmp_path).episodes > 12
    again = run(registry, answers, tmp_path)
    assert (again.episodes, len(again.measured)) == (0, 3)


def test_better_priors_after_the_first_look_decide_what_is_looked_at(checked, tmp_path, monkeypatch):
    registry = checked("a")
    known, better = registry.posteriors, []
    monkeypatch.setattr(
        registry,
        "posteriors",
        lambda pairs, lineage="": {
            pair: replace(found, beta=found.beta + 40.0 * len(better), prior_beta=found.prior_beta + 40.0 * len(better))
            for pair, found in known(pairs, lineage=lineage).items()
        },
    )
    campaign = run(registry, ["no"], tmp_path, first_looked=lambda: better.append(1))
    assert [(m.verdict, m.n) for m in campaign.measured] == [("too_hard", 4)]


def test_drafts_and_broken_ones_are_left_out(checked, make_text_task):
    registry = checked("a")
    registry.push([make_text_task("draft")])
    good, left_out = candidates(registry, "")
    assert ([item.slug for item in good], [item.slug for item in left_out]) == (["a"], ["draft"])


def test_a_task_that_never_gets_a_grade_is_given_up(checked, tmp_path, monkeypatch):
    registry = checked("a")
    monkeypatch.setattr("registry.calibration.measure.run_group", ungraded_group)
    campaign = run(registry, ["yes"], tmp_path)
    assert [(m.verdict, m.n, m.ungraded) for m in campaign.measured] == [("uncertain", 0, 8)]


def test_what_is_left_is_told_from_the_first_ended_episode_on_not_from_the_engine_s_start(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("registry.calibration.campaign.time.monotonic", lambda: now[0])
    campaign = Campaign(tasks=4, started=now[0], expected=40.0)
    now[0] += 600
    assert campaign.progress().eta_s is None
    campaign.note_ended()
    now[0] += 10
    campaign.ended = 10
    assert (campaign.progress().elapsed_s, campaign.progress().eta_s) == (610.0, 30.0)


def test_where_nothing_is_graded_the_rest_is_not_tried(checked, tmp_path, monkeypatch):
    registry = checked(*(f"t{n}" for n in range(12)))
    monkeypatch.setattr("registry.calibration.measure.run_group", ungraded_group)
    campaign = run(registry, ["yes"], tmp_path, concurrency=4)
    assert (campaign.episodes, campaign.ungraded, len(campaign.measured)) == (32, 32, 12)
    assert campaign.why_ungraded.startswith("host_lost")


async def ungraded_group(task, agent_factory, provider, n, **options):
    """As `run_group`, on a machine that loses every episode."""
    from envsdk.episode.group import run_group
    from envsdk.outcome import classify

    records = await run_group(task, agent_factory, provider, n, **options)
    lost = classify({"phase": "agent", "ended_by": "exception", "exception": {"kind": "host_lost"}})
    return [record.model_copy(update={"outcome": lost}) for record in records]


def test_cancelling_keeps_what_ended(checked, tmp_path):
    registry = checked("a", "b", "c")
    items, _ = candidates(registry, "")

    async def cancelled_after_the_first_look():
        task = asyncio.current_task()

        def heard(campaign):
            if campaign.episodes >= 4:
                task.cancel()

        await measure(
            registry,
            items,
            agent=saying(["yes"]),
            lineage="fixed",
            provider=None,
            folder=tmp_path / "fetched",
            run="screening",
            concurrency=4,
            heard=heard,
        )

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_after_the_first_look())
    assert sum(item.n for item in registry.query("policy:fixed").items) >= 4


def test_a_prior_alone_however_certain_costs_a_task_its_first_look_still(checked, tmp_path, monkeypatch):
    registry = checked("a")
    known = registry.posteriors
    monkeypatch.setattr(
        registry,
        "posteriors",
        lambda pairs, lineage="": {
            pair: replace(found, alpha=found.alpha + 30.0) for pair, found in known(pairs, lineage=lineage).items()
        },
    )
    campaign = run(registry, ["yes"], tmp_path)
    assert [(m.verdict, m.n) for m in campaign.measured] == [("saturated", 4)]
