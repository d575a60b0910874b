"""``envsdk import`` and ``envsdk export``: nothing is left out in silence, and Harbor comes back as it was."""

from __future__ import annotations

import filecmp
import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from envsdk.cli import export
from envsdk.cli.app import run
from envsdk.spec.load import load_task

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "verifier_defects"


def call(capsys, *args: str) -> tuple[int, dict]:
    code = run([*args, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_harbor_goes_through_unchanged(tmp_path: Path, capsys) -> None:
    code, result = call(capsys, "import", "harbor", str(CASES / "good-plain"), str(tmp_path / "in"))
    assert (code, result["imported"], result["rejected"]) == (0, 1, [])
    code, result = call(capsys, "export", "harbor", str(tmp_path / "in"), str(tmp_path / "out"))
    assert (code, result["exported"]) == (0, 1)
    compared = filecmp.dircmp(CASES / "good-plain", tmp_path / "out" / "good-plain")
    assert (compared.left_only, compared.right_only, compared.diff_files) == ([], [], [])


def test_a_rejection_names_path_code_and_reason(tmp_path: Path, capsys) -> None:
    (tmp_path / "src" / "bad").mkdir(parents=True)
    (tmp_path / "src" / "bad" / "task.toml").write_text("[agnet]\n")
    code, result = call(capsys, "import", "harbor", str(tmp_path / "src"), str(tmp_path / "out"))
    assert (code, result["imported"], result["ok"]) == (1, 0, False)
    assert [error["code"] for error in result["errors"]] == ["unknown_field"]
    assert [(Path(r["path"]).name, r["code"], bool(r["why"])) for r in result["rejected"]] == [
        ("bad", "unknown_field", True)
    ]
    assert not (tmp_path / "out").exists()


def test_what_is_not_rejected_is_there_and_the_exit_code_tells_that_something_was(tmp_path: Path, capsys) -> None:
    run(["init", str(tmp_path / "src" / "good")])
    (tmp_path / "src" / "bad").mkdir(parents=True)
    (tmp_path / "src" / "bad" / "task.toml").write_text("[agnet]\n")
    capsys.readouterr()
    code, result = call(capsys, "import", "harbor", str(tmp_path / "src"), str(tmp_path / "out"))
    assert (code, result["ok"], result["imported"]) == (1, False, 1)
    assert [error["code"] for error in result["errors"]] == ["unknown_field"]
    assert (tmp_path / "out" / "good" / "task.toml").is_file()


def test_a_place_that_cannot_be_written_to_is_no_fault_of_the_tasks(tmp_path: Path, capsys) -> None:
    run(["init", str(tmp_path / "src" / "good")])
    (tmp_path / "out").write_text("a file")
    capsys.readouterr()
    code, result = call(capsys, "import", "harbor", str(tmp_path / "src"), str(tmp_path / "out"))
    assert (code, [error["code"] for error in result["errors"]]) == (4, ["unwritable"])


def test_a_slug_is_used_once(tmp_path: Path, capsys) -> None:
    args = ("import", "harbor", str(CASES / "good-plain"), str(tmp_path))
    assert call(capsys, *args)[0] == 0
    code, result = call(capsys, *args)
    assert (code, [r["code"] for r in result["rejected"]]) == (1, ["duplicate_slug"])


def test_warnings_are_reported(tmp_path: Path, capsys) -> None:
    run(["init", str(tmp_path / "src" / "t")])
    instruction = tmp_path / "src" / "t" / "instruction.md"
    instruction.write_text("<!-- canary 1 -->\n" + instruction.read_text())
    capsys.readouterr()
    _, result = call(capsys, "import", "harbor", str(tmp_path / "src"), str(tmp_path / "out"))
    assert [w["code"] for w in result["warnings"]] == ["canary"]


def test_canaries_anywhere_in_a_task_are_reported(tmp_path: Path, capsys) -> None:
    run(["init", str(tmp_path / "src" / "t"), "--kind", "script"])
    script = tmp_path / "src" / "t" / "tests" / "test.sh"
    script.write_text(script.read_text() + "# canary GUID 1234\n")
    capsys.readouterr()
    _, result = call(capsys, "import", "harbor", str(tmp_path / "src"), str(tmp_path / "out"))
    assert [(w["code"], "tests/test.sh" in w["why"]) for w in result["warnings"]] == [("canary", True)]
    assert result["summary"] == {"rejected": {}, "warnings": {"canary": 1}, "unheeded": {}}


def test_the_table_for_people_counts_each_code(tmp_path: Path, capsys) -> None:
    for name in ("a", "b"):
        (tmp_path / "src" / name).mkdir(parents=True)
    run(["import", "harbor", str(tmp_path / "src"), str(tmp_path / "out")])
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "     2 rejected not_a_task",
        "0 imported, 2 rejected, 0 warnings",
    ]


def test_the_table_says_which_fields_have_no_effect_here(tmp_path: Path, capsys) -> None:
    for name, gpus in (("a", 1), ("b", 2), ("c", 0)):
        run(["init", str(tmp_path / "src" / name), "--kind", "script"])
        toml = tmp_path / "src" / name / "task.toml"
        toml.write_text(toml.read_text().replace("[environment]\n", f"[environment]\ngpus = {gpus}\n", 1))
        with toml.open("a") as file:
            file.write("\n[[verifier.collect]]\ncommand = 'true'\n")
    capsys.readouterr()
    args = ["import", "harbor", str(tmp_path / "src")]
    run([*args, str(tmp_path / "out")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == ["     3 unheeded verifier.collect", "     2 unheeded environment.gpus"]
    assert call(capsys, *args, str(tmp_path / "again"))[1]["summary"]["unheeded"] == {
        "verifier.collect": 3,
        "environment.gpus": 2,
    }


def test_an_import_in_a_pipe_says_how_far_it_has_come(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("envsdk.cli.progress._LINE_S", 0.0)
    rows = [{"question": f"{n}+1?", "result": n + 1} for n in range(3)]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    run(["import", "dataset", str(tmp_path / "r.json"), str(tmp_path / "o"), "--column", "instruction=question"])
    assert "importing: 2" in capsys.readouterr().err


def test_rows_become_tasks_by_a_column_map(tmp_path: Path, capsys) -> None:
    (tmp_path / "r.jsonl").write_text('{"question": "1+1?", "result": 2, "topic": "sums"}\n')
    columns = ("--column", "instruction=question", "--column", "answer=result")
    code, result = call(capsys, "import", "dataset", str(tmp_path / "r.jsonl"), str(tmp_path / "out"), *columns)
    task = load_task(Path(result["tasks"][0]["path"]))
    assert (code, task.spec.instruction, task.spec.verifier.params) == (0, "1+1?", {"expected": "2"})
    assert task.spec.metadata == {"row": {"topic": "sums"}}


def test_a_column_map_has_two_sides(tmp_path: Path, capsys) -> None:
    code, result = call(capsys, "import", "dataset", "x.jsonl", str(tmp_path), "--column", "answer")
    assert (code, result["errors"][0]["code"]) == (2, "bad_column_map")


def test_the_table_for_people_ends_with_counts(tmp_path: Path, capsys) -> None:
    run(["import", "harbor", str(CASES / "good-plain"), str(tmp_path / "out")])
    assert capsys.readouterr().out == "1 imported, 0 rejected, 0 warnings\n"


def test_a_query_goes_to_an_installed_registry(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        def load(self):
            return lambda query, dest: [load_task(CASES / query.removeprefix("tag:"))]

    monkeypatch.setattr(export, "entry_points", lambda group: [Entry()])
    code, result = call(capsys, "export", "harbor", "tag:good-plain", str(tmp_path / "out"))
    assert (code, result["exported"]) == (0, 1)


def test_a_mistyped_path_is_not_taken_for_an_empty_query_in_silence(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        def load(self):
            return lambda query, dest: []

    monkeypatch.setattr(export, "entry_points", lambda group: [Entry()])
    run(["export", "harbor", "taks", str(tmp_path / "out")])
    assert "no path is called 'taks'" in capsys.readouterr().err


def test_without_a_registry_a_query_is_a_missing_prerequisite(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    none: list[EntryPoint] = []
    monkeypatch.setattr(export, "entry_points", lambda group: none)
    code, result = call(capsys, "export", "harbor", "tag:x", str(tmp_path / "out"))
    assert (code, result["errors"][0]["code"]) == (3, "extra_missing")
