"""The bundled families: oracles pass, wrong answers fail, draws are distinct, and a seed means one task."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

import tasks
from envsdk.authoring.declare import PythonVerifier
from envsdk.authoring.draw import Draw, named
from envsdk.authoring.families import Family
from envsdk.authoring.find import registered_families
from envsdk.authoring.state import FolderState
from envsdk.digest import tree_digest
from tasks import ledger_api
from tasks.shop import BUGS, buggy_source, right_source
from tasks.words import WORDS

FAMILIES = registered_families()
TEXT = ("upper-word", "count-letters", "sums")
SEEDS = range(6)


def settings(*names: str) -> list[tuple[str, dict]]:
    return [(name, level) for name in names for level in FAMILIES[name].settings()]


def judge(family: Family, draw: Draw, subject: object) -> float:
    declared = family.declaration.verifier
    assert isinstance(declared, PythonVerifier)
    return float(declared.function(subject, **draw.params))


def box(folder: Path, draw: Draw) -> Path:
    app = folder / "app"
    app.mkdir(parents=True)
    for path, text in draw.files.items():
        (app / path).parent.mkdir(parents=True, exist_ok=True)
        (app / path).write_text(text, newline="")
    return app


def sh(app: Path, script: str) -> str:
    script = script.replace(" /app/", f" {app}/").replace('"/app/', f'"{app}/')
    return subprocess.run(
        ["sh", "-c", f"set -eu\n{script}"], cwd=app, capture_output=True, text=True, check=False
    ).stdout


def test_there_are_at_least_six_families_of_every_protocol() -> None:
    assert len(FAMILIES) >= 6
    assert {f.declaration.agent.protocol for f in FAMILIES.values()} == {"answer", "command", "shell"}
    assert [name for name, f in FAMILIES.items() if f.declaration.services] == ["ledger-api"]


@pytest.mark.parametrize(("name", "level"), settings(*TEXT), ids=str)
def test_text_verifiers_tell_right_from_wrong(name: str, level: dict) -> None:
    family = FAMILIES[name]
    for seed in SEEDS:
        draw = family.sample(seed=seed, level=level)
        assert judge(family, draw, draw.oracle) == 1.0
        assert {n: judge(family, draw, text) for n, text in named(draw.right).items()} == dict.fromkeys(
            named(draw.right), 1.0
        )
        assert {n: judge(family, draw, text) for n, text in named(draw.wrong).items()} == dict.fromkeys(
            named(draw.wrong), 0.0
        )
        for text in ("", draw.instruction, "\x00\ufffd", "²", "١", "1_0", "+1", "-0", "9" * 5000):
            assert judge(family, draw, text) == 0.0, text


@pytest.mark.parametrize(("name", "level"), settings("shell-line"), ids=str)
def test_shell_lines_print_what_is_asked(tmp_path: Path, name: str, level: dict) -> None:
    family = FAMILIES[name]
    app = box(tmp_path, family.sample(seed=0, level=level))
    for seed in SEEDS:
        draw = family.sample(seed=seed, level=level)
        assert judge(family, draw, sh(app, draw.oracle)) == 1.0, draw
        for reply in named(draw.right).values():
            assert judge(family, draw, sh(app, reply)) == 1.0, (reply, draw)
        for reply in named(draw.wrong).values():
            assert judge(family, draw, sh(app, reply)) == 0.0, (reply, draw)


@pytest.mark.parametrize(("name", "level"), settings("file-chores"), ids=str)
def test_chores_leave_the_expected_tree(tmp_path: Path, name: str, level: dict) -> None:
    family = FAMILIES[name]
    for seed in range(5):
        draw = family.sample(seed=seed, level=level)
        for number, (reply, reward) in enumerate(
            [(draw.oracle, 1.0), ("true", 0.0), *((reply, 0.0) for reply in named(draw.wrong).values())]
        ):
            folder = tmp_path / f"{seed}-{number}"
            sh(box(folder, draw), reply)
            assert judge(family, draw, FolderState(folder)) == reward, (reply, draw)


def test_a_chores_box_with_a_loop_of_folders_is_judged_and_not_walked_forever(tmp_path: Path) -> None:
    family = FAMILIES["file-chores"]
    draw = family.sample(seed=0)
    app = box(tmp_path, draw)
    sh(app, draw.oracle)
    (app / "again").symlink_to(".")
    assert judge(family, draw, FolderState(tmp_path)) == 0.0


def test_a_chores_box_without_anything_is_judged(tmp_path: Path) -> None:
    family = FAMILIES["file-chores"]
    assert judge(family, family.sample(seed=0), FolderState(tmp_path)) == 0.0


@pytest.fixture
def api() -> Iterator[str]:
    space: dict = {"__name__": "server"}
    exec(ledger_api.SERVER, space)
    server = ThreadingHTTPServer(("127.0.0.1", 0), space["Handler"])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("name", "level"), settings("ledger-api"), ids=str)
def test_the_ledgers_answer_is_the_one_its_service_gives(tmp_path: Path, api: str, name: str, level: dict) -> None:
    family = FAMILIES[name]
    draw = family.sample(seed=1, level=level)
    for number, (reply, reward) in enumerate(
        [
            (draw.oracle, 1.0),
            ("true", 0.0),
            *((r, 1.0) for r in named(draw.right).values()),
            *((r, 0.0) for r in named(draw.wrong).values()),
        ]
    ):
        folder = tmp_path / str(number)
        sh(box(folder, draw), reply.replace("http://api:8000", api))
        assert judge(family, draw, FolderState(folder)) == reward, (reply, draw)


def fix(folder: Path, draw: Draw, reply: str) -> str:
    """What the judge of fix-function writes, its absolute paths re-pointed."""
    app = box(folder, draw)
    sh(app, reply)
    (folder / "tests").mkdir()
    for name, text in draw.tests.items():
        (folder / "tests" / name).write_text(text.replace('"/', f'"{folder}/') if name.endswith(".py") else text)
    judge_py = folder / "tests" / "judge.py"
    # This interpreter may lie where only root can run it; that the judge drops its rights is tested in a real sandbox.
    text = (
        judge_py.read_text()
        .replace(f'cwd="{folder}/"', 'cwd="/"')
        .replace("if os.geteuid() == 0 else", "if False else")
    )
    judge_py.write_text(text)
    subprocess.run([sys.executable, "-I", "-B", str(judge_py)], check=True, capture_output=True, text=True)
    return (folder / "logs" / "verifier" / "reward.txt").read_text()


@pytest.mark.parametrize(("functions", "shown"), [(1, True), (2, False), (8, True)])
def test_repairs_are_judged_by_running_them(tmp_path: Path, functions: int, shown: bool) -> None:
    draw = FAMILIES["fix-function"].sample(seed=2, level={"functions": functions, "shown": shown})
    replies = {"oracle": draw.oracle, "nothing": "true", **named(draw.wrong)}
    found = {name: fix(tmp_path / name, draw, reply) for name, reply in replies.items()}
    assert found == {name: "1\n" if name == "oracle" else "0\n" for name in replies}


@pytest.mark.parametrize(
    "trick",
    [
        "import sys; sys.stdout.write('[]')",
        "import os; os._exit(0)",
        "class Any(list):\n    __eq__ = lambda a, b: True\nimport json; json.dumps = lambda value: '[]'",
        "import gc, json\nfor o in gc.get_objects():\n    pass",
        "raise SystemExit(0)",
        "while True: pass",
    ],
)
def test_a_submission_cannot_talk_its_way_out(tmp_path: Path, trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = FAMILIES["fix-function"].sample(seed=2, level={"functions": 1})
    draw = Draw(
        **{
            **draw.__dict__,
            "tests": {**draw.tests, "judge.py": draw.tests["judge.py"].replace("timeout=10", "timeout=1")},
        }
    )
    name = draw.oracle.partition("shop/")[2].partition(".py")[0]
    reply = f"cat > shop/{name}.py <<'END'\n{trick}\nEND"
    assert fix(tmp_path, draw, reply) == "0\n"


@pytest.mark.parametrize("name", sorted(BUGS))
def test_every_bug_breaks_its_function_and_keeps_its_promise(name: str) -> None:
    assert buggy_source(name) != right_source(name)
    assert right_source(name).count("\ndef ") + right_source(name).startswith("def ") == 1
    assert right_source(name).split('"""')[1] == buggy_source(name).split('"""')[1]


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_draws_of_one_setting_share_their_image(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    digests = {tree_digest(task.root / "environment") for task in family.draw_many(seeds=range(3), dest=tmp_path)}
    assert len(digests) == 1


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_setting_can_be_written(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    for level in family.settings():
        task = family.draw(seed=7, level=level, dest=tmp_path / family.slug(level, 7))
        assert (task.spec.level, task.spec.family, task.spec.seed) == (level, name, 7)
        assert 0 < family.predicted_pass(level) < 1


@pytest.mark.parametrize(
    ("name", "level"),
    [("upper-word", {}), ("count-letters", {}), ("shell-line", {"skill": "print"}), ("shell-line", {"skill": "look"})],
)
def test_families_to_train_on_have_room_for_a_held_out_set(name: str, level: dict) -> None:
    family = FAMILIES[name]
    drawn = {repr(family.sample(seed=seed, level=level)) for seed in range(1000)}
    assert len(drawn) >= 128


def test_words_are_plain_and_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS) > 500
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)


def test_a_published_draw_stays_as_it_is() -> None:
    """Golden: a change here renames every published task of the family."""
    drawn = FAMILIES["upper-word"].sample(seed=1, level={"words": 3})
    assert drawn.instruction == "street socket border, in capital letters"


def test_the_package_declares_what_it_names() -> None:
    modules = {d.declaration.module.rpartition(".")[2] for d in FAMILIES.values()}
    assert modules == set(tasks.__all__)


def test_predicted_rates_fall_with_each_knob() -> None:
    for family in FAMILIES.values():
        for knob, values in family.levels.items():
            rates = [family.predicted_pass({knob: value}) for value in values]
            assert all(a >= b for a, b in itertools.pairwise(rates)), (family.name, knob)
