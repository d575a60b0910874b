"""Rows in and out: every row is a task or a rejection, and a task's row says what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsdk.errors import UsageError
from envsdk.formats.dataset import GRADED_VERIFIER, VERIFIER, as_row, export_dataset, import_dataset, read_rows

SPACE: dict[str, object] = {}
exec(VERIFIER, SPACE)
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=20).filter(
    str.strip
)


def bring(tmp_path: Path, text: str, suffix: str = ".jsonl", **columns: str):
    source = tmp_path / f"rows{suffix}"
    source.write_text(text, encoding="utf-8")
    return import_dataset(source, tmp_path / "out", columns=columns)


def test_every_row_is_a_task_or_a_rejection(tmp_path: Path) -> None:
    rows = '{"instruction":"a","answer":"b"}\n\nnope\n[1]\n{"instruction":"a"}\n{"instruction":"","answer":"b"}\n'
    result = bring(tmp_path, rows)
    assert len(result.tasks) == 1
    assert [(r.path.rpartition(":")[2], r.code) for r in result.rejected] == [
        ("2", "bad_row"),
        ("3", "bad_row"),
        ("4", "missing_column"),
        ("5", "missing_column"),
    ]


def test_an_empty_value_is_not_taken_for_a_mistyped_column(tmp_path: Path) -> None:
    result = bring(tmp_path, "instruction,answer\n,b\na,b\n", ".csv")
    assert "fill it in" in result.rejected[0].why
    assert "columns are" in bring(tmp_path, ROWS_OF_TWO_KINDS).rejected[0].why


ROWS_OF_TWO_KINDS = '{"instruction":"a","result":"b"}\n{"instruction":"a","answer":"b"}\n'


@pytest.mark.parametrize(
    ("suffix", "text"),
    [(".csv", "instruction,answer\na,b\nc,d\n"), (".jsonl", '{"instruction":"a","answer":"b"}\n' * 2)],
)
def test_a_column_that_no_row_has_is_said_once(tmp_path: Path, suffix: str, text: str) -> None:
    with pytest.raises(UsageError, match="no row has a column 'anwser'") as caught:
        bring(tmp_path, text, suffix, answer="anwser")
    assert (caught.value.code, caught.value.hint) == ("missing_column", "did you mean 'answer'?")


def test_lines_of_a_table_are_counted_with_its_header(tmp_path: Path) -> None:
    rejected = bring(tmp_path, "instruction,answer\na,b\n,d\n", ".csv").rejected
    assert [item.path.rpartition(":")[2] for item in rejected] == ["3"]


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".jsonl", '{"instruction":"a","answer":"b"}'),
        (".json", '[{"instruction":"a","answer":"b"}]'),
        (".csv", "\ufeffinstruction,answer\na,b\n"),
    ],
)
def test_each_kind_of_file_gives_the_same_task(tmp_path: Path, suffix: str, text: str) -> None:
    task = bring(tmp_path, text, suffix).tasks[0]
    assert (task.slug, task.spec.instruction, task.spec.verifier.params) == ("rows-1", "a", {"expected": "b"})


def test_a_saved_folder_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([{"instruction": "a", "answer": "b"}]).save_to_disk(str(tmp_path / "saved"))
    assert list(read_rows(tmp_path / "saved")) == [{"instruction": "a", "answer": "b"}]


def test_lines_are_split_at_newlines_only(tmp_path: Path) -> None:
    assert bring(tmp_path, '{"instruction":"a\u2028b","answer":"c\u0085d"}\n').tasks[0].spec.instruction == "a\u2028b"


def test_slugs_and_wrong_answers_come_from_their_columns(tmp_path: Path) -> None:
    task = bring(
        tmp_path, '{"instruction":"a","answer":"b","id":"my one","bad":["x","y"]}', slug="id", wrong="bad"
    ).tasks[0]
    assert (task.slug, sorted(p.read_text() for p in (task.root / "mutants" / "wrong").iterdir())) == (
        "my one",
        ["x", "y"],
    )


@pytest.mark.parametrize(
    ("grader", "answer", "right", "wrong"),
    [
        ("numeric", "1000", "1,000.0", "1001"),
        ("choice", "B", "The answer is (B).", "A or B"),
        ("boxed", r"\frac{1}{2}", r"so \boxed{0.5}", "1/2"),
        ("json_equal", '{"a": 1}', '{"a": 1.0}', '{"a": 2}'),
        ("set_equal", "a, b", "b\na", "a"),
        ("code_output", "1\n2", "1 \n2\n", "1"),
    ],
)
def test_a_row_is_judged_by_the_grader_that_is_named(
    tmp_path: Path, grader: str, answer: str, right: str, wrong: str
) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"instruction": "x", "answer": answer}))
    (task,) = import_dataset(tmp_path / "r.jsonl", tmp_path / "out", columns={}, grader=grader).tasks
    space: dict[str, object] = {}
    exec(GRADED_VERIFIER, space)
    oracle = (task.root / "solution" / "answer.txt").read_text()
    judged = [space["graded"](reply, **task.spec.verifier.params) for reply in (oracle, right, wrong)]
    assert judged == [1.0, 1.0, 0.0]
    assert (task.root / "tests" / "_envsdk" / "graders" / "numeric.py").is_file()


@pytest.mark.parametrize(
    ("grader", "answer", "code"), [("numeric", "many", "unreadable_truth"), ("boxed", "}{", "oracle_fails")]
)
def test_a_row_whose_answer_the_grader_cannot_take_is_rejected(
    tmp_path: Path, grader: str, answer: str, code: str
) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"instruction": "x", "answer": answer}))
    result = import_dataset(tmp_path / "r.jsonl", tmp_path / "out", columns={}, grader=grader)
    assert [rejected.code for rejected in result.rejected] == [code]


@pytest.mark.parametrize("grader", ["numerik", "sql", "json_schema", ""])
def test_a_grader_that_is_none_of_an_answer_is_refused(tmp_path: Path, grader: str) -> None:
    (tmp_path / "r.jsonl").write_text("{}")
    with pytest.raises(UsageError) as caught:
        import_dataset(tmp_path / "r.jsonl", tmp_path / "out", columns={}, grader=grader)
    assert caught.value.code == "no_grader"


def test_two_rows_cannot_share_a_slug(tmp_path: Path) -> None:
    result = bring(
        tmp_path, '{"instruction":"a","answer":"b","slug":"s"}\n{"instruction":"c","answer":"d","slug":"s"}\n'
    )
    assert (len(result.tasks), [r.code for r in result.rejected]) == (1, ["duplicate_slug"])


def test_a_wrong_key_of_the_map_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        bring(tmp_path, "{}", anser="x")
    assert caught.value.hint == "did you mean 'answer'?"


@pytest.mark.parametrize("name", ["none.jsonl", "x.parquet"])
def test_a_source_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.parquet").write_text("")
    with pytest.raises(UsageError) as caught:
        import_dataset(tmp_path / name, tmp_path / "out", columns={})
    assert caught.value.code == "bad_rows"


def test_columns_that_mean_nothing_to_us_are_kept(tmp_path: Path) -> None:
    row = {"instruction": "a", "answer": "b", "n": 1, "f": 0.5, "t": True, "none": None, "list": [1, "ü"], "big": 2**70}
    task = bring(tmp_path, json.dumps(row)).tasks[0]
    assert task.spec.metadata["row"] == {"n": 1, "f": 0.5, "t": True, "list": '[1, "ü"]', "big": 2**70}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXT, TEXT)
def test_the_oracle_of_every_row_passes_and_is_exported(
    tmp_path_factory: pytest.TempPathFactory, question: str, answer: str
) -> None:
    folder = tmp_path_factory.mktemp("d")
    result = bring(folder, json.dumps({"instruction": question, "answer": answer}))
    for task in result.tasks:
        row = as_row(task)
        assert (row["instruction"], row["answer"]) == (task.spec.instruction, answer)
        assert SPACE["same_text"](answer, **task.spec.verifier.params) == 1.0


def test_an_export_is_one_row_a_task_and_replaces_nothing(tmp_path: Path) -> None:
    tasks = bring(tmp_path, '{"instruction":"a","answer":"b"}\n{"instruction":"c","answer":"d"}\n').tasks
    assert export_dataset(tasks, tmp_path / "o.jsonl") == 2
    assert [json.loads(line)["answer"] for line in (tmp_path / "o.jsonl").read_text().split("\n")[:-1]] == ["b", "d"]
    with pytest.raises(UsageError):
        export_dataset(tasks, tmp_path / "o.jsonl")
