"""Surroundings changed together: everything is tried at least once, and one that matters is still named alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from envsdk.checks import clock, hash_seed, surroundings
from envsdk.checks.engine import ask_check
from envsdk.checks.scene import Scene
from envsdk.checks.stage import OracleRun, Stage
from envsdk.verifying.verdict import Verdict
from tests.fakes.tasks import script_task, text_task


@pytest.mark.parametrize("seeds", [surroundings.SEEDS, surroundings.SEEDS[:5]])
def test_every_seed_zone_locale_and_date_is_tried(seeds: tuple[str, ...]) -> None:
    scenes = surroundings._scenes(Scene(), seeds)
    assert [scene.env["PYTHONHASHSEED"] for scene in scenes] == list(seeds)
    assert {scene.env.get("TZ") for scene in scenes} >= set(surroundings.ZONES)
    assert {scene.env.get("LC_ALL") for scene in scenes} >= set(surroundings.LOCALES)
    assert {scene.faketime for scene in scenes} >= set(surroundings.SHIFTS)


async def test_where_all_agree_nothing_is_tried_alone(tmp_path: Path) -> None:
    async with Stage(text_task(tmp_path), None, repeats=2) as stage:
        results = [await ask_check(check, stage) for check in (hash_seed.CHECK, clock.CHECK)]
        assert [result.outcome for result in results] == ["pass", "pass"]
        assert (
            stage.runs == 1 + len(await surroundings.seeds_for(stage)) + 1
        )  # the oracle, all at once, and one repetition


@pytest.mark.parametrize(
    ("condition", "check", "word"),
    [
        ("time.localtime(0).tm_hour == 0", clock.CHECK, "TZ="),
        ("time.time() < 1_830_000_000", clock.CHECK, "the clock at +400d"),
        ("os.environ.get('LC_ALL') != 'C'", hash_seed.CHECK, "LC_ALL=C"),
        ("os.environ.get('PYTHONHASHSEED') != '5'", hash_seed.CHECK, "PYTHONHASHSEED=5"),
    ],
)
async def test_the_one_that_matters_is_named(tmp_path: Path, condition: str, check: object, word: str) -> None:
    source = (
        f"import os\nimport time\n\n\ndef judge(answer):\n    return float(answer.strip() == '5' and {condition})\n"
    )
    async with Stage(text_task(tmp_path, source=source), None, repeats=2) as stage:
        result = await ask_check(check, stage)  # type: ignore[arg-type]
    assert result.outcome == "fail"
    assert word in result.why


async def test_an_oracle_whose_verdict_the_machinery_lost_makes_nothing_guilty(tmp_path: Path) -> None:
    async with Stage(text_task(tmp_path), None, repeats=2) as stage:
        run = await stage.oracle()
        assert run is not None
        lost = asyncio.get_running_loop().create_future()
        lost.set_result(replace(run, verdict=Verdict("error", code="upload_failed")))
        stage._oracle = lost
        results = [await ask_check(check, stage) for check in (clock.CHECK, hash_seed.CHECK)]
    assert [result.outcome for result in results] == ["error", "error"]
    assert all("upload_failed" in result.why for result in results)


async def test_a_zone_does_not_make_the_hash_seed_guilty(tmp_path: Path) -> None:
    source = "import time\n\n\ndef judge(answer):\n    return float(time.localtime(0).tm_hour == 0)\n"
    async with Stage(text_task(tmp_path, source=source), None, repeats=2) as stage:
        assert (await ask_check(hash_seed.CHECK, stage)).outcome == "pass"


async def test_runs_that_agree_only_under_one_seed_are_the_seeds_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([1, 1, 0] + [1] * 60)  # the second repetition differs; nothing else does

    async def play(stage: Stage, scene: Scene) -> Verdict:
        reward = 1.0 if "PYTHONHASHSEED" in scene.env else float(next(told))
        return Verdict("scored", reward, {"reward": reward})

    monkeypatch.setattr(Stage, "play", play)
    async with Stage(text_task(tmp_path), None, repeats=4) as stage:
        result = await ask_check(hash_seed.CHECK, stage)
    assert result.outcome == "fail"
    assert "only under one hash seed" in result.why


async def test_chance_that_no_seed_holds_back_is_not_the_seeds_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, int] = {}

    async def play(stage: Stage, scene: Scene) -> Verdict:
        seed = scene.env.get("PYTHONHASHSEED", "")
        seen[seed] = seen.get(seed, 0) + 1
        reward = 0.0 if seen[seed] == 3 else 1.0
        return Verdict("scored", reward, {"reward": reward})

    monkeypatch.setattr(Stage, "play", play)
    async with Stage(text_task(tmp_path), None, repeats=4) as stage:
        result = await ask_check(hash_seed.CHECK, stage)
    assert result.outcome == "pass"


@pytest.mark.parametrize(
    ("line", "seconds", "seeds"),
    [
        ("want = ' '.join(set(words))", 0.1, 40),
        ("want = ' '.join(sorted(words))", 0.1, 10),
        ("want = ' '.join(set(words))", 4.0, 15),
        ("want = ' '.join(set(words))", 100.0, 10),
    ],
)
async def test_more_seeds_where_a_script_names_what_hangs_on_them_and_a_minute_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, seconds: float, seeds: int
) -> None:
    async def oracle(stage: Stage) -> OracleRun:
        return OracleRun(Verdict("scored", 1.0, {"reward": 1.0}, seconds=seconds), None, {}, {})

    monkeypatch.setattr(Stage, "oracle", oracle)
    test = f"python3 -I - <<'EOF'\n{line}\nEOF\necho 1 > /logs/verifier/reward.txt\n"
    stage = Stage(script_task(tmp_path, test=test), None)
    assert len(set(await surroundings.seeds_for(stage))) == seeds
