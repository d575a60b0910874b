"""What is said while tasks are measured: the engine's start is not taken for a slow task."""

from __future__ import annotations

from registry.calibration.campaign import Campaign
from registry.cli.progress import line


def test_before_the_engine_runs_it_is_the_engine_that_is_waited_for():
    campaign = Campaign(tasks=3, ready=lambda: False)
    campaign.looking = 3
    assert line(campaign).startswith("the policy's engine is starting, ")


def test_during_the_first_look_the_episodes_that_ended_are_counted_though_no_look_is_over():
    campaign = Campaign(tasks=3)
    campaign.looking = 3
    campaign.note_ended()
    campaign.note_ended()
    assert line(campaign).startswith("0 of 3 tasks, first look at 3 under way, 2 episodes, ")


def test_later_rounds_are_numbered():
    campaign = Campaign(tasks=3)
    campaign.round, campaign.looking = 1, 2
    assert "look 2 at 2 under way" in line(campaign)


def test_an_episode_that_ended_shows_that_the_engine_runs():
    campaign = Campaign(tasks=1, ready=lambda: False)
    campaign.note_ended()
    assert "engine" not in line(campaign)
