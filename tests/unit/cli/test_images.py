"""``envsdk images`` over built images that the test made up."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from envsdk.cli.images import app
from envsdk.sandboxes import pruning
from envsdk.sandboxes.pruning import BuiltImage

OLD = BuiltImage("docker", "envsdk-task:old", 12.34, 0.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    async def prune(**options: Any) -> list[BuiltImage]:
        seen.append(options)
        return [OLD]

    async def listed() -> list[BuiltImage]:
        return [OLD]

    monkeypatch.setattr(pruning, "prune", prune)
    monkeypatch.setattr(pruning, "list_built", listed)
    return seen


def test_listing_names_each_image_its_size_and_how_long_it_lies(asked: list[dict[str, Any]]) -> None:
    (row,) = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)["images"]
    assert (row["sandbox"], row["name"], row["size_mib"]) == ("docker", "envsdk-task:old", 12.3)
    assert row["unused_days"] > 10_000
    assert "1 images, 12 MiB in all" in CliRunner().invoke(app, ["list"]).stdout


def test_days_and_gibibytes_reach_the_pruning_in_its_units(asked: list[dict[str, Any]]) -> None:
    CliRunner().invoke(app, ["prune", "--older-than-days", "7", "--budget-gib", "2"])
    assert asked == [{"max_age_s": 7 * 86_400.0, "budget_mib": 2048.0, "is_trial": False}]


def test_a_dry_run_says_so(asked: list[dict[str, Any]]) -> None:
    result = CliRunner().invoke(app, ["prune", "--dry-run"])
    assert asked[0]["is_trial"] is True
    assert "would be removed" in result.stdout
