"""Settings that follow from others: filled in where nobody set them, and only there."""

from __future__ import annotations

import pytest

from envsdk.spec.model import Budget, Task
from tests.fakes.episodes import make_task
from trainer.config import TrainConfig, resolve
from trainer.implied import implied, longest_replies
from trainer.placement import Placement

CPU = Placement("cpu", ((),))


def task(**budget: int) -> Task:
    made = make_task()
    return made.model_copy(update={"spec": made.spec.model_copy(update={"budget": Budget(**budget)})})


@pytest.mark.parametrize(
    ("budgets", "context", "longest"),
    [
        ([{"turns": 1, "reply_tokens": 64}], 2048, 64),
        ([{"turns": 4, "reply_tokens": 64}, {"turns": 1, "reply_tokens": 100}], 2048, 256),
        ([{"turns": 4, "reply_tokens": 64, "episode_tokens": 200}], 2048, 200),
        ([{"turns": 64, "reply_tokens": 512}], 2048, 2048),
    ],
)
def test_the_longest_replies_are_bound_by_turns_episode_and_context(
    budgets: list[dict[str, int]], context: int, longest: int
) -> None:
    assert longest_replies([task(**budget) for budget in budgets], context=context) == longest


def test_dr_grpo_divides_by_what_the_tasks_allow_and_other_losses_by_nothing_new() -> None:
    tasks = [task(turns=3, reply_tokens=40)]
    assert implied(resolve({"learner.loss": "dr_grpo"}).config, tasks, CPU).learner.loss.length == 120.0
    assert implied(TrainConfig(), tasks, CPU).learner.loss == TrainConfig().learner.loss


def test_learner_and_engine_take_the_runs_seed_unless_they_have_their_own() -> None:
    run = implied(TrainConfig(seed=7), [task()], CPU)
    assert (run.learner.seed, run.engine.seed) == (7, 7)
    own = implied(resolve({"seed": 7, "learner.seed": 0, "engine.seed": 3}).config, [task()], CPU)
    assert (own.learner.seed, own.engine.seed) == (0, 3)


def test_learner_and_engine_go_where_they_were_placed_unless_a_share_was_set() -> None:
    one_gpu = Placement("cuda:0", ((0,),))
    run = implied(TrainConfig(), [task()], one_gpu)
    assert (run.learner.device, run.engine.gpu_share) == ("cuda:0", 0.45)
    assert implied(resolve({"engine.gpu_share": 0.3}).config, [task()], one_gpu).engine.gpu_share == 0.3
    assert implied(TrainConfig(), [task()], Placement("cuda:0", ((1,),))).engine.gpu_share is None
    on_cpu = implied(TrainConfig(), [task()], CPU)
    assert (on_cpu.learner.device, on_cpu.engine.gpu_share) == ("cpu", None)
