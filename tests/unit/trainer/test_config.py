"""Settings: which source wins, where a value came from, and what a mistake is told."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from envsdk.config import setting
from envsdk.errors import SpecError, UsageError
from trainer.config import TrainConfig, resolve


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings but the test's own."""
    monkeypatch.chdir(tmp_path)
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_args, **_kwargs: user)
    for name in list(os.environ):
        if name == "ENVSDK_REGISTRY" or name.startswith("ENVSDK_TRAIN_"):
            monkeypatch.delenv(name)
    return tmp_path


def test_defaults_are_the_models_own() -> None:
    found = resolve({})
    assert found.config == TrainConfig()
    assert found.origins == {}


def test_each_source_wins_over_the_one_below(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    for steps, origin in [(2, "user/config.toml"), (3, "envsdk.toml"), (4, "given.toml")]:
        path = alone / origin
        path.write_text(f"[train]\nsteps = {steps}\n")
        config = path if origin == "given.toml" else None
        found = resolve({}, config=config)
        assert found.config.steps == steps
        assert Path(found.origins["steps"]).name == path.name
        sources.append(path)
    monkeypatch.setenv("ENVSDK_TRAIN_STEPS", "5")
    found = resolve({}, config=sources[-1])
    assert (found.config.steps, found.origins["steps"]) == (5, "environment")
    found = resolve({"steps": 6}, config=sources[-1])
    assert (found.config.steps, found.origins["steps"]) == (6, "flag")


def test_a_flag_that_was_not_given_counts_for_nothing() -> None:
    assert resolve({"steps": None}).config.steps == TrainConfig().steps


def test_a_nested_setting_leaves_its_neighbours_alone() -> None:
    found = resolve({"learner.lr": "3e-5"}).config.learner
    assert found == TrainConfig().learner.model_copy(update={"lr": 3e-5})


def test_every_mistake_is_reported_at_once_with_its_place_and_a_guess() -> None:
    with pytest.raises(SpecError) as caught:
        resolve({"steps": 0, "group_sise": 4, "learner.lr": "fast"})
    fields = {problem["field"]: problem for problem in caught.value.problems}
    assert set(fields) == {"steps", "group_sise", "learner.lr"}
    assert "group_size" in fields["group_sise"]["problem"]
    assert fields["steps"]["where"] == "flag"


@pytest.mark.parametrize(
    ("given", "meant"),
    [("max_lag", "learner.batch.max_lag"), ("max_lagg", "learner.batch.max_lag"), ("stepz", "steps")],
)
def test_a_setting_out_of_its_table_is_guessed(given: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f"no such setting; did you mean '{meant}'"):
        resolve({given: 1})


def test_a_value_out_of_range_is_told_with_what_was_given_and_where() -> None:
    with pytest.raises(SpecError, match=r"learner\.lr: .*not 'nan' \(from: flag\)"):
        resolve({"learner.lr": "nan"})


@pytest.mark.parametrize(("text", "hint"), [("[trian]\nsteps = 3\n", "for [trian]"), ("steps = 3\n", "under [train]")])
def test_a_given_file_without_the_table_is_not_taken_for_the_defaults(alone: Path, text: str, hint: str) -> None:
    (alone / "given.toml").write_text(text)
    with pytest.raises(UsageError, match="no table") as caught:
        resolve({}, config=alone / "given.toml")
    assert hint in caught.value.hint


def test_a_missing_or_broken_file_is_said(alone: Path) -> None:
    with pytest.raises(UsageError, match="no such configuration"):
        resolve({}, config=alone / "nowhere.toml")
    (alone / "bad.toml").write_text("[train\n")
    with pytest.raises(UsageError, match="not TOML") as caught:
        resolve({}, config=alone / "bad.toml")
    assert caught.value.where == str(alone / "bad.toml")


def test_a_project_s_file_may_hold_settings_of_other_commands_too(alone: Path) -> None:
    (alone / "pyproject.toml").write_text('[tool.envsdk]\nregistry = "sqlite:///x"\n[tool.envsdk.train]\nsteps = 9\n')
    found = resolve({})
    assert (found.config.steps, found.origins["steps"]) == (9, str(alone / "pyproject.toml"))
    assert setting("registry").value == "sqlite:///x"


def test_the_pools_bound_is_the_batchs_where_whole_groups_are_dropped() -> None:
    assert resolve({"learner.batch.max_lag": 2}).config.max_lag == 2
    assert resolve({"learner.batch.lag_rule": "mask"}).config.max_lag is None


@pytest.mark.parametrize("rule", ["drop_group", "mask", "weight", "error"])
def test_running_further_ahead_than_may_be_trained_is_refused(rule: str) -> None:
    flags = {"staleness": 5, "learner.batch.max_lag": 4, "learner.batch.lag_rule": rule}
    with pytest.raises(SpecError, match=r"staleness 5 is above learner\.batch\.max_lag 4") as caught:
        resolve(flags)
    assert (caught.value.code, caught.value.problems[0]["field"]) == ("invalid_config", "train")
    assert resolve(flags | {"learner.batch.max_lag": 5}).config.staleness == 5


def test_the_listing_names_every_setting_once_with_its_origin() -> None:
    lines = list(resolve({"steps": 7}).lines())
    assert "steps = 7    # flag" in lines
    names = [line.split(" = ")[0] for line in lines]
    assert len(names) == len(set(names)) > 30


def test_a_preset_is_what_it_stands_for_below_what_its_source_and_those_above_set(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone / "envsdk.toml").write_text("[train.learner]\nkl_coef = 0.5\nloss.eps_low = 0.1\n")
    monkeypatch.setenv("ENVSDK_TRAIN_LEARNER_LOSS", "grpo")
    found = resolve({"learner.loss.eps_high": "0.3"})
    learner = found.config.learner
    assert (learner.batch.estimator, learner.kl_coef, learner.loss.eps_low) == ("grpo", 0.04, 0.2)
    assert learner.loss.eps_high == 0.3
    assert found.origins["learner.batch.estimator"] == "environment"
    assert learner.batch.lag_rule == TrainConfig().learner.batch.lag_rule
