"""The page of settings names every setting of a run and of the program, with the default that it has."""

import re
from pathlib import Path

from envsdk.config import DEFAULTS
from trainer.config import TrainConfig, flatten

PAGE = Path(__file__).parents[2] / "docs/reference/settings.md"


def _rows() -> dict[str, str]:
    """What stands first and second in each row: names of settings, and as many defaults, or one for all of them."""
    found: dict[str, str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) < 4 or not (names := re.findall(r"`([\w.]+)`", cells[1])):
            continue
        values = re.findall(r"`([^`]*)`", cells[2]) or [""]
        found |= dict(zip(names, values if len(values) == len(names) else values * len(names), strict=True))
    return found


def test_every_setting_of_a_run_stands_with_its_default() -> None:
    rows = _rows()
    settings = {name: repr(value) for name, value in flatten(TrainConfig().model_dump()).items()}
    assert {name: rows.get(name) for name in settings} == settings


def test_the_page_names_no_setting_that_is_none() -> None:
    known = {*flatten(TrainConfig().model_dump()), *DEFAULTS, "learner.loss"}
    assert set(_rows()) - known == set()


def test_a_preset_is_named_as_it_is_given() -> None:
    from trainer.loss.preset import PRESETS

    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in PRESETS if f"`{name}`" not in page] == []
