"""What there is to check behind a path or a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring.find import one_task
from envsdk.authoring.scaffold import scaffold
from envsdk.checks.gather import SEEDS, gather
from envsdk.errors import UsageError

MODULE = """
from envsdk import Draw, family, task, verifier


@verifier
def same(answer: str, *, word: str) -> bool:
    return answer.strip() == word


@task(verifier=same)
def one() -> Draw:
    return Draw(instruction="Say a.", oracle="a", params={"word": "a"})


@family(verifier=same, levels={"length": [2, 4, 6]})
def many(rng, *, length: int) -> Draw:
    word = "".join(rng.choices("abcdefgh", k=length))
    return Draw(instruction="Say it.", oracle=word, params={"word": word})
"""


def test_directories_and_folders_of_them_are_loaded_and_invalid_ones_named(tmp_path: Path) -> None:
    scaffold(tmp_path / "all" / "b", kind="text")
    scaffold(tmp_path / "all" / "a", kind="text")
    (tmp_path / "all" / "bad").mkdir()
    (tmp_path / "all" / "bad" / "task.toml").write_text("[")
    found = gather([str(tmp_path / "all")], tmp_path / "drawn")
    assert [task.slug for task in found.tasks] == ["a", "b"]
    assert [Path(item.path).name for item in found.rejected] == ["bad"]


def test_a_python_file_gives_its_tasks_and_draws_of_its_families_at_both_ends(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    found = gather([str(tmp_path / "mine.py")], tmp_path / "drawn")
    assert [task.slug for task in found.tasks] == ["one", *(f"many-{n}-{seed}" for n in (2, 6) for seed in SEEDS)]
    assert all(task.root.is_relative_to(tmp_path / "drawn") for task in found.tasks)


def test_a_family_is_found_by_name(tmp_path: Path) -> None:
    slugs = [task.slug for task in gather(["upper-word"], tmp_path).tasks]
    assert len(slugs) == 2 * len(SEEDS)
    assert all(slug.startswith("upper-word-") for slug in slugs)


def test_a_module_that_raises_is_rejected_and_the_others_are_unharmed(tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('no')\n")
    scaffold(tmp_path / "good", kind="text")
    found = gather([str(tmp_path / "broken_module.py"), str(tmp_path / "good")], tmp_path / "drawn")
    assert [task.slug for task in found.tasks] == ["good"]
    assert found.rejected[0].code == "import_failed"


@pytest.mark.parametrize(
    "source", ["no/such/thing", "nothing", "no.such.module", "envsdk.no_such_part", "none.py", "../no.py"]
)
def test_what_is_neither_path_nor_module_nor_family_is_a_usage_error(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError) as refused:
        gather([source], tmp_path)
    assert refused.value.code == "no_such_source"
    assert refused.value.where == source


def test_a_file_that_imports_what_is_not_there_is_that_files_fault(tmp_path: Path) -> None:
    (tmp_path / "lacking.py").write_text("import no_such_module_anywhere\n")
    found = gather([str(tmp_path / "lacking.py")], tmp_path / "drawn")
    assert [item.code for item in found.rejected] == ["import_failed"]
    assert "no_such_module_anywhere" in found.rejected[0].why


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise RuntimeError('no such thing')", "draw_failed"),
        ("return None", "draw_failed"),
        ("return Draw(instruction='Say b.', oracle='b', params={'word': {'b'}})", "params_mismatch"),
        ("return Draw(instruction='Say b.', oracle='b', params={'wort': 'b'})", "params_mismatch"),
    ],
)
def test_a_misfit_in_a_file_is_one_finding_and_its_neighbours_are_unharmed(
    tmp_path: Path, body: str, code: str
) -> None:
    (tmp_path / "mine.py").write_text(f"{MODULE}\n\n@task(verifier=same)\ndef misfit() -> Draw:\n    {body}\n")
    found = gather([str(tmp_path / "mine.py")], tmp_path / "drawn")
    assert "one" in {task.slug for task in found.tasks}
    assert [(Path(item.path).name, item.code) for item in found.rejected] == [("mine.py::misfit", code)]


def test_an_author_s_exception_is_told_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(f"{MODULE}\n\n@task(verifier=same)\ndef misfit() -> Draw:\n    raise KeyError('gone')\n")
    line = source.read_text().splitlines().index("    raise KeyError('gone')") + 1
    (rejected,) = gather([str(source)], tmp_path / "drawn").rejected
    assert "KeyError: 'gone'" in rejected.why
    assert f"mine.py:{line}" in rejected.why


def test_a_task_is_opened_by_name_whatever_its_neighbours_are(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(f"{MODULE}\n\n@task(verifier=same)\ndef misfit() -> Draw:\n    raise KeyError('gone')\n")
    assert one_task(f"{source}::one", tmp_path / "drawn").slug == "one"
