"""Verifiers in C++, Rust and JavaScript that run one test of many, built and run for real in the toolchains' image."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from envsdk.checks import mutants, oracle, skip_ratio
from envsdk.checks.engine import ask_check, check_task
from envsdk.checks.mutation.sources import cut_short
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from tests.labelled import compiled
from tests.labelled.mini import Labelled, write
from tests.labelled.toolchains import CASES

pytestmark = [pytest.mark.bubblewrap, pytest.mark.toolchains, pytest.mark.slow]


@pytest.fixture
async def provider() -> AsyncIterator[SandboxProvider]:
    opened = open_provider("bubblewrap")
    yield opened
    await opened.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_one_test_of_many_is_found_and_all_of_them_are_not_accused(
    tmp_path: Path, provider: SandboxProvider, case: Labelled
) -> None:
    async with Stage(load_task(write(case, tmp_path)), provider, repeats=2) as stage:
        results = [await ask_check(check, stage) for check in (oracle.CHECK, skip_ratio.CHECK, mutants.CHECK)]
    said = {result.check: result for result in results}
    assert said["oracle"].outcome == "pass", said["oracle"]
    if case.is_good:
        assert [result.outcome for result in results] == ["pass"] * 3, results
        return
    assert said["skip_ratio"].outcome == "fail", said["skip_ratio"]
    assert said["mutants"].outcome == "fail", said["mutants"]
    assert "first test" in said["mutants"].why


@pytest.mark.parametrize("case", compiled.CASES, ids=lambda case: case.id)
async def test_tests_that_hide_and_failures_that_are_lost_are_found(
    tmp_path: Path, provider: SandboxProvider, case: Labelled
) -> None:
    asked = case.caught_by[:1] or ("oracle", "noop", "mutants", "skip_ratio", "static")
    report = await check_task(load_task(write(case, tmp_path)), provider, checks=asked, fresh=True)
    failed = {row.check: row.why for row in report.checks if row.outcome in {"fail", "error"}}
    assert bool(failed) != case.is_good, (failed, case.why)
    assert not any(row.outcome == "error" for row in report.checks), failed


async def test_what_is_cut_short_builds_with_every_warning_an_error(tmp_path: Path, provider: SandboxProvider) -> None:
    source = """#include <string>
#include <vector>
static int half(int n) {
    return n / 2;
}
std::vector<std::string> names(const std::string& first, int n) {
    std::vector<std::string> out{first};
    for (int i = 0; i < half(n); ++i) out.push_back(first);
    return out;
}
bool odd(unsigned n) {
    return n % 2;
}
"""
    made = cut_short("cpp", source, {"list": '{"a", "b"}', "truth": "true", "number": "3", "text": '"t"'})
    assert made.count("if (true)") == 3
    async with Stage(load_task(write(CASES[0], tmp_path)), provider) as stage, stage.box(Scene()) as box:
        await box.write("/tmp/a.cpp", made.encode())
        built = await box.exec("g++ -std=c++17 -Wall -Wextra -Werror -c -o /tmp/a.o /tmp/a.cpp", timeout_s=120)
    assert built.ok, built.stderr.decode()
