"""``envsdk bench collect``: the arms on stdout, all else on stderr, and codes for what it cannot read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envsdk.errors import UsageError
from trainer.cli.bench import app

SMALL = ["--groups", "2", "--group-size", "2", "--slots", "3", "--batches", "5"]


def a_trace(folder: Path) -> str:
    rows = "".join(f"t{n % 4},{5 + 10 * (n % 4)},{n % 2},1,{4 + 10 * (n % 4)}\n" for n in range(16))
    path = folder / "durations.csv"
    path.write_text(f"task,total_s,passed,setup_s,agent_s\n{rows}t0,,,,\n")
    return str(path)


def test_the_envelope_holds_every_arm_with_its_composition(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["collect", "--trace", a_trace(tmp_path), "--json", *SMALL])
    assert result.exit_code == 0
    envelope = json.loads(result.stdout)
    assert (envelope["ok"], envelope["trials"], envelope["untimed"]) == (True, 16, 1)
    assert envelope["arms"][0]["name"] == "wait_all"
    for arm in envelope["arms"]:
        assert {"name", "collect_s", "reduction", "low", "high", "attribution", "composition"} == set(arm)
        assert set(arm["composition"]) == {"kept", "launched"}


def test_chosen_arms_run_beside_the_baseline(tmp_path: Path) -> None:
    arguments = ["collect", "--trace", a_trace(tmp_path), "--arm", "carry_over", "--json", *SMALL]
    names = [arm["name"] for arm in json.loads(CliRunner().invoke(app, arguments).stdout)["arms"]]
    assert names == ["wait_all", "carry_over"]


def test_without_a_trace_it_says_that_the_durations_are_invented() -> None:
    result = CliRunner().invoke(app, ["collect", "--json", *SMALL])
    assert json.loads(result.stdout)["trace"] == "invented"
    assert "invented" in result.stderr


def test_the_table_has_a_line_for_each_arm(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["collect", "--trace", a_trace(tmp_path), *SMALL])
    assert [line.split()[0] for line in result.stdout.splitlines()][1:] == [
        "wait_all", "longest_first", "interleaved", "first_complete", "carry_over",
        "carry_over_longest_first",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--arm", "fastest"], "unknown_arm"), (["--trace", "/no/such.csv"], "no_trace")]
)
def test_what_it_cannot_do_has_a_code(arguments: list[str], code: str) -> None:
    result = CliRunner().invoke(app, ["collect", *arguments])
    assert isinstance(result.exception, UsageError)
    assert result.exception.code == code
