"""Where a verifier names a source of chance, its runs are compared more often."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.checks import repeat
from envsdk.checks.chance import names_hash_order, sources_of_chance
from envsdk.checks.engine import ask_check
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.verifying.verdict import Verdict
from tests.fakes.tasks import text_task

_DRAWS = "import random\n\n\ndef judge(answer):\n    return float(random.random() < 2 and answer.strip() == '5')\n"
_DRAWS_TASKS = "import random\n\n\ndef judge(answer):\n    return float(answer == '5')\n\n\ndef draw():\n    return random.random()\n"


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("random numbers", "n=$((RANDOM % 4))"),
        ("random numbers", "printf 'a\\nb\\n' | shuf -n 1"),
        ("random numbers", "head -c 1 /dev/urandom"),
        ("random numbers", "sort -R names.txt"),
        ("random numbers", "case = random.choice(CASES)"),
        ("random numbers", "let mut rng = rand::thread_rng();"),
        ("random numbers", "const n = Math.random();"),
        ("random numbers", "int n = rand() % 4;"),
        ("small digits of the clock", "[ $(( $(date +%s%N) % 3 )) -ne 0 ]"),
        ("small digits of the clock", "start = time.perf_counter()"),
        ("a race", "python3 server.py &"),
        ("a race", "sleep 0.1"),
        ("a race", "worker = threading.Thread(target=serve)"),
        ("an order that each process draws", "for my $name (keys %seen) {"),
        ("an order that each process draws", "let mut seen: HashSet<&str> = HashSet::new();"),
        ("an order that each process draws", "seen := map[string]bool{}"),
    ],
)
def test_a_source_is_named_with_its_line(kind: str, line: str) -> None:
    assert sources_of_chance({"tests/test.sh": f"#!/bin/sh\nset -u\n{line}\n"})[kind] == "tests/test.sh:3"


@pytest.mark.parametrize(
    "line",
    [
        '[ "$(cat /app/out.txt)" = 33 ] && echo 1 > /logs/verifier/reward.txt',
        "make test > /logs/out.txt 2>&1",
        "assert operand == 3 and strand() and brand(2)",
        "if a && b; then cmd &> /dev/null; fi",
        "date -d 2024-03-01 +%Y",
    ],
)
def test_what_draws_no_lots_is_no_source(line: str) -> None:
    assert sources_of_chance({"tests/test.sh": line + "\n"}) == {}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("first = set(words).pop()", True),
        ("want = {word.lower() for word in words}", True),
        ("want = {'red', 'blue'}", True),
        ("bucket = hash(name) % 4", True),
        ("counts = {word: 0 for word in words}", False),
        ("reset(words); set -e; { echo 'a, b'; }", False),
        ("print(f'{got}, {want}')", False),
    ],
)
def test_what_hangs_on_the_hash_seed_is_seen_by_name(line: str, named: bool) -> None:
    assert names_hash_order({"tests/test.sh": line}) is named


@pytest.mark.parametrize(
    ("source", "seconds", "runs"),
    [
        (_DRAWS, 0.01, 12),
        (_DRAWS.replace("random", "string"), 0.01, 3),
        (_DRAWS_TASKS, 0.01, 3),
        (_DRAWS, 20.0, 6),
        (_DRAWS, 100.0, 3),
    ],
)
async def test_more_runs_where_chance_is_named_and_a_minute_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, seconds: float, runs: int
) -> None:
    async def play(stage: Stage, scene: Scene) -> Verdict:
        return Verdict("scored", 1.0, {"reward": 1.0}, seconds=seconds)

    monkeypatch.setattr(Stage, "play", play)
    async with Stage(text_task(tmp_path, source=source), None, repeats=3) as stage:
        result = await ask_check(repeat.CHECK, stage)
    assert result.evidence["agreement"] == f"{runs} of {runs}"


async def test_a_draw_that_ten_runs_would_miss_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = iter([1.0] * 20 + [0.0] + [1.0] * 60)

    async def play(stage: Stage, scene: Scene) -> Verdict:
        reward = next(rewards)
        return Verdict("scored", reward, {"reward": reward})

    monkeypatch.setattr(Stage, "play", play)
    async with Stage(text_task(tmp_path, source=_DRAWS), None) as stage:
        assert (await ask_check(repeat.CHECK, stage)).outcome == "fail"
