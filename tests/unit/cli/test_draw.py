"""`envsdk draw` writes the tasks it lists, the same ones each time, and tags move no digest that evidence belongs to."""

import json
from pathlib import Path

import pytest

from envsdk.cli.app import run


def _draw(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict]:
    status = run(["draw", *args, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_each_seed_gives_a_task_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, envelope = _draw(capsys, "upper-word", str(tmp_path), "--seeds", "3..6")
    assert status == 0
    assert {Path(task["path"]).parent for task in envelope["tasks"]} == {tmp_path}
    assert all((Path(task["path"]) / "task.toml").is_file() for task in envelope["tasks"])
    assert len({task["task_digest"] for task in envelope["tasks"]}) == len(envelope["tasks"]) == 4


def test_the_same_seed_gives_the_same_digests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = _draw(capsys, "upper-word", str(tmp_path / "a"), "--seeds", "1")[1]["tasks"][0]
    two = _draw(capsys, "upper-word", str(tmp_path / "b"), "--seeds", "1")[1]["tasks"][0]
    assert one["task_digest"] == two["task_digest"]
    assert one["verifier_digest"] == two["verifier_digest"]


def test_a_tag_changes_neither_task_nor_verifier_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = _draw(capsys, "upper-word", str(tmp_path / "a"), "--seeds", "1")[1]["tasks"][0]
    tagged = _draw(capsys, "upper-word", str(tmp_path / "b"), "--seeds", "1", "--tag", "held-out")[1]["tasks"][0]
    assert (plain["task_digest"], plain["verifier_digest"]) == (tagged["task_digest"], tagged["verifier_digest"])
    assert "held-out" in (Path(tagged["path"]) / "task.toml").read_text()


def test_a_level_is_typed_by_the_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, envelope = _draw(
        capsys, "upper-word", str(tmp_path), "--level", "words=3", "--level", "accents=true", "--seeds", "0"
    )
    assert status == 0
    assert envelope["tasks"][0]["slug"] == "upper-word-3-true-0"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("upper-word", "--seeds", "5..2"), "bad_seeds"),
        (("upper-word", "--seeds", "few"), "bad_seeds"),
        (("upper-word", "--seeds", "-1..2"), "bad_seeds"),
        (("upper-word", "--seeds", "٣"), "bad_seeds"),
        (("upper-word", "--seeds", "0..100000"), "bad_seeds"),
        (("upper-word", "--seeds", "0..99999999999999999999"), "bad_seeds"),
        (("upper-word", "--level", "words"), "bad_level"),
        (("upper-word", "--level", "words=99"), "bad_level"),
        (("upper-word", "--level", "size=2"), "bad_level"),
        (("uper-word",), "no_family"),
    ],
)
def test_what_cannot_be_drawn_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], code: str
) -> None:
    status, envelope = _draw(capsys, args[0], str(tmp_path / "none"), *args[1:])
    assert (status, envelope["errors"][0]["code"]) == (2, code)
    assert not (tmp_path / "none").exists()
