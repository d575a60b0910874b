"""The demonstration goes on where it stopped, does again what changed, and calls nothing learned that was not."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FAKE = f"""#!{sys.executable}
import json, os, sys, time
with open(os.environ["CALLS"], "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "fail":
    sys.exit(3)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "slow":
    try:
        open(os.environ["CALLS"], "a").write("sleeping\\n")
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(0.3)
        open(os.environ["CALLS"], "a").write("closed what it had open\\n")
        sys.exit(130)
print(json.dumps({{"ok": True, "errors": [], "said": sys.argv[1]}}))
"""


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo_script", ROOT / "scripts" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def calls(demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "envsdk"
    program.write_text(FAKE)
    program.chmod(0o755)
    (tmp_path / "done").mkdir()
    monkeypatch.setattr(demo, "ENVSDK", str(program))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def _stage(demo, *commands: str, name: str = "one", **options):
    return demo.Stage(name, "a stage", lambda _: [command.split() for command in commands], **options)


def test_a_finished_stage_is_read_and_not_run_again(demo, calls, tmp_path: Path) -> None:
    first, second = demo.Results(), demo.Results()
    assert demo.run_stage(_stage(demo, "hello a"), "1/1", first, tmp_path) is True
    assert demo.run_stage(_stage(demo, "hello a"), "1/1", second, tmp_path) is False
    assert calls() == ["hello a --json"]
    assert second.last("one") == first.last("one") == {"ok": True, "errors": [], "said": "hello"}


def test_a_stage_whose_commands_changed_is_done_again(demo, calls, tmp_path: Path) -> None:
    demo.run_stage(_stage(demo, "hello a"), "1/1", demo.Results(), tmp_path)
    assert demo.run_stage(_stage(demo, "hello b"), "1/1", demo.Results(), tmp_path) is True
    assert calls() == ["hello a --json", "hello b --json"]


def test_a_failed_stage_leaves_no_marker_and_passes_its_status_on(demo, calls, tmp_path: Path) -> None:
    with pytest.raises(demo.StageError) as caught:
        demo.run_stage(_stage(demo, "hello", "fail"), "1/1", demo.Results(), tmp_path)
    assert caught.value.status == 3
    assert list((tmp_path / "done").iterdir()) == []


def test_a_stage_that_was_killed_says_so_and_the_machinery_failed(
    demo, calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "stages", lambda *_: [_stage(demo, "killed")])
    assert demo.run_all({}, tmp_path / "settings", tmp_path) == 4
    assert "was killed by SIGKILL" in capsys.readouterr().err


def test_what_a_half_done_stage_wrote_is_removed_before_it_runs_again(demo, calls, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "half").mkdir(parents=True)
    (tmp_path / "rows").write_text("half")
    stage = _stage(demo, "hello", makes=(tmp_path / "tasks", tmp_path / "rows", tmp_path / "never"))
    demo.run_stage(stage, "1/1", demo.Results(), tmp_path)
    assert not (tmp_path / "tasks").exists()
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(("there", "call"), [("run/checkpoints", "go on"), ("run", "train"), ("elsewhere", "train")])
def test_training_resumes_only_where_there_is_a_checkpoint(demo, calls, tmp_path: Path, there: str, call: str) -> None:
    (tmp_path / there).mkdir(parents=True)
    stage = _stage(demo, "train", resumes=tmp_path / "run", resume=("go", "on"))
    demo.run_stage(stage, "1/1", demo.Results(), tmp_path)
    assert calls() == [f"{call} --json"]


def test_a_resumed_training_is_told_no_settings_but_those_it_began_with(demo, tmp_path: Path) -> None:
    settings_file = ROOT / "scripts" / "demo.toml"
    everything = demo.stages(tomllib.loads(settings_file.read_text()), settings_file, tmp_path)
    resume = next(stage for stage in everything if stage.name == "train").resume
    assert resume == ("train", "--runs", str(tmp_path / "runs"), "--name", "train", "--resume")


def test_what_rests_on_a_stage_is_undone_before_the_stage_is_done_again(demo, calls, tmp_path: Path) -> None:
    after = _stage(demo, "hello", name="after")
    demo.run_stage(after, "2/2", demo.Results(), tmp_path)
    with pytest.raises(demo.StageError):
        demo.run_stage(_stage(demo, "fail"), "1/2", demo.Results(), tmp_path, later=[after])
    assert list((tmp_path / "done").iterdir()) == []


HELD = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("demo_script", sys.argv[1])
demo = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = demo
spec.loader.exec_module(demo)
demo.ENVSDK = sys.argv[2]
folder = Path(sys.argv[3])
with demo.alone(folder):
    demo.run_stage(demo.Stage("one", "a stage", lambda _: [[sys.argv[4]]]), "1/1", demo.Results(), folder)
"""


def _demonstration(demo, tmp_path: Path, command: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", HELD, str(ROOT / "scripts" / "demo.py"), demo.ENVSDK, str(tmp_path), command]
    return subprocess.Popen(program, stderr=subprocess.PIPE, text=True)


def test_a_killed_demonstration_takes_its_command_along_and_the_next_waits_for_its_end(
    demo, calls, tmp_path: Path
) -> None:
    with _demonstration(demo, tmp_path, "slow") as killed:
        while "sleeping" not in calls():
            time.sleep(0.02)
        with _demonstration(demo, tmp_path, "hello") as following:
            said = following.stderr.readline()
            killed.kill()
            following.communicate(timeout=60)
    assert f"waiting for the end of another demonstration in {tmp_path}" in said
    assert following.returncode == 0
    assert calls() == ["slow --json", "sleeping", "closed what it had open", "hello --json"]


def test_two_demonstrations_do_not_work_in_one_folder(demo, calls, tmp_path: Path) -> None:
    with _demonstration(demo, tmp_path, "slow") as first:
        while "sleeping" not in calls():
            time.sleep(0.02)
        with _demonstration(demo, tmp_path, "hello") as second:
            assert "waiting" in second.stderr.readline()
            assert "hello --json" not in calls()
            first.terminate()
            second.communicate(timeout=60)
        first.communicate(timeout=60)
    assert calls()[-2:] == ["closed what it had open", "hello --json"]


def test_an_interrupted_command_is_waited_for_not_killed(demo, calls, tmp_path: Path) -> None:
    def interrupt() -> None:
        while "sleeping" not in calls():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        demo.run_stage(_stage(demo, "slow"), "1/1", demo.Results(), tmp_path)
    assert calls()[-1] == "closed what it had open"
    assert list((tmp_path / "done").iterdir()) == []


def _results(demo, tmp_path: Path, *, low_after: float = 0.31, held_out: str = "a" * 64):
    rate = {"pass_rate": 0.2, "n": 256}
    (tmp_path / "tasks" / f"{'b' * 16}-{'0' * 8}").mkdir(parents=True)
    return demo.Results(
        {
            "before": [{**rate, "low": 0.1, "high": 0.30}],
            "after": [{**rate, "low": low_after, "high": 0.9}],
            "train": [{"steps": 3, "outcomes": {}, "run_dir": str(tmp_path)}],
            "pin": [{"items": [{"slug": "some-task", "task_digest": held_out}]}],
        }
    )


@pytest.mark.parametrize(("low_after", "status"), [(0.31, 0), (0.30, 1), (0.1, 1)])
def test_only_a_gain_beyond_both_intervals_is_called_one(demo, tmp_path: Path, low_after: float, status: int) -> None:
    assert demo.conclude(_results(demo, tmp_path, low_after=low_after), tmp_path) == status


def test_a_gain_on_tasks_that_were_trained_on_is_none(demo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.conclude(_results(demo, tmp_path, held_out="b" * 64), tmp_path) == 1
    assert "some-task" in capsys.readouterr().err


def test_held_out_tasks_are_drawn_from_other_seeds_and_are_never_asked_for(demo, tmp_path: Path) -> None:

    settings_file = ROOT / "scripts" / "demo.toml"
    settings = tomllib.loads(settings_file.read_text())
    for family in settings["demo"]["families"]:
        (low, high), (held_low, held_high) = (map(int, family[key].split("..")) for key in ("train", "held_out"))
        assert high < held_low or held_high < low
    everything = list(demo.stages(settings, settings_file, tmp_path))
    train = next(stage for stage in everything if stage.name == "train").commands(demo.Results())[0]
    assert "-tag:held-out" in train[train.index("--query") + 1]


def test_a_folder_that_is_done_asks_for_nothing_more(
    demo, calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "demo.toml"
    settings.write_text((ROOT / "scripts" / "demo.toml").read_text())
    monkeypatch.setattr(
        demo, "stages", lambda *_: iter([_stage(demo, "hello a", name="one"), _stage(demo, "hello b", name="two")])
    )
    monkeypatch.setattr(demo, "conclude", lambda *_: 0)

    async def some_sandbox() -> str:
        return "bubblewrap"

    monkeypatch.setattr(demo, "sandbox", some_sandbox)
    monkeypatch.setattr(demo, "require_room_to_train", lambda *_: None)
    assert demo.main(settings, tmp_path) == demo.main(settings, tmp_path) == 0
    assert calls() == ["hello a --json", "hello b --json"]
