"""The program's edge: lazy commands, one block and one envelope an error, exit codes."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer

from envsdk.cli import app
from envsdk.errors import EnvsdkError, FaultyError, PrerequisiteError, SandboxError, SpecError, UsageError

HERE = __name__


def raising(error: BaseException):
    def command() -> None:
        raise error

    return command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """Mount a function as the command ``probe``."""

    def mount(function) -> None:
        monkeypatch.setitem(app.OWN, "probe", app.CommandEntry("A probe.", "probe:probe"))
        monkeypatch.setattr(app, "load_command", lambda name, entry: function)

    return mount


def test_help_lists_every_command_and_imports_none() -> None:
    line = (
        "import sys; from envsdk.cli.app import run; code = run(['--help'])\n"
        "heavy = {'torch', 'vllm', 'sqlalchemy', 'fastapi', 'docker', 'registry', 'trainer', 'envsdk.spec.load'} & set(sys.modules)\n"
        "print(code, sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    assert {"init", "check", "run", "import", "export", "registry", "train"} <= set(done.stdout.split())


def test_nothing_given_is_help_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([]) == 0
    out, err = capsys.readouterr()
    assert ("Usage: envsdk" in out, "check" in out, err) == (True, True, "")


def test_options_without_a_command_are_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--json"]) == 2
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_mistyped_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["docter"]) == 2
    assert "Did you mean 'doctor'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (UsageError("bad"), "usage", 2),
        (SpecError("bad"), "invalid_spec", 2),
        (PrerequisiteError("bad"), "prerequisite_missing", 3),
        (SandboxError("bad"), "sandbox_failed", 4),
        (FaultyError("bad"), "faulty", 1),
        (EnvsdkError("bad", code="odd"), "odd", 4),
        (ZeroDivisionError("bad"), "internal_error", 4),
        (typer.Abort(), "aborted", 4),
    ],
)
def test_every_error_has_its_code_and_exit_code(command, capsys, error, code: str, exit_code: int) -> None:
    command(raising(error))
    assert app.run(["probe"]) == exit_code
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"error [{code}]"), "Traceback" in err) == ("", True, False)


def test_an_error_says_object_and_fix(command, capsys) -> None:
    command(raising(UsageError("went wrong", where="thing", hint="mend it")))
    app.run(["probe"])
    assert capsys.readouterr().err == "error [usage] thing: went wrong\n  fix: mend it\n"


def test_json_puts_the_error_into_the_envelope(command, capsys) -> None:
    def probe(*, as_json: app.Annotated[bool, typer.Option("--json")] = False) -> None:
        raise UsageError("went wrong", where="thing", hint="mend it")

    command(probe)
    assert app.run(["probe", "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "errors": [{"code": "usage", "message": "went wrong", "hint": "mend it", "where": "thing"}],
    }


def test_json_covers_mistakes_in_options_too(capsys) -> None:
    assert app.run(["schema", "--json", "--nonsense"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["hint"] == "envsdk schema --help"


def test_interruption_is_130(command, capsys) -> None:
    command(raising(KeyboardInterrupt()))
    assert app.run(["probe"]) == 130
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", "error [interrupted] interrupted")


@pytest.mark.parametrize("args", [["--debug", "probe"], ["probe", "--debug"]])
def test_debug_shows_the_traceback(command, capsys, args: list[str]) -> None:
    command(raising(UsageError("bad")))
    assert app.run(args) == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_after_two_dashes_is_the_commands_own(command, capsys) -> None:
    def probe(words: list[str]) -> None:
        print(words)

    command(probe)
    assert app.run(["probe", "--", "--debug"]) == 0
    assert capsys.readouterr().out == "['--debug']\n"


@pytest.mark.parametrize("code", [0, 1, 3, 4])
def test_a_command_chooses_its_exit_code(command, code: int) -> None:
    command(raising(typer.Exit(code)))
    assert app.run(["probe"]) == code


def test_a_command_of_another_package_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("other", "some_package.cli:app", "envsdk.commands")
    monkeypatch.setattr(app, "entry_points", lambda group: [entry])
    assert app.commands()["other"] == app.CommandEntry("From some_package.", "some_package.cli:app", "some_package")


def test_ours_cannot_be_replaced_by_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "entry_points", lambda group: [EntryPoint("check", "evil:app", "envsdk.commands")])
    assert app.commands()["check"].target == "envsdk.cli.check:check"


def test_a_missing_extra_breaks_its_own_command_alone(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    entry = EntryPoint("other", "no_such_package.cli:app", "envsdk.commands")
    monkeypatch.setattr(app, "entry_points", lambda group: [entry])
    assert app.run(["--help"]) == 0
    assert app.run(["other"]) == 3
    assert "pip install 'envsdk[no_such_package]'" in capsys.readouterr().err


def test_a_reader_that_left_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m envsdk.cli.app_probe 2>&1 | true; {sys.executable} -c "
        '\'from envsdk.cli.app import main; import sys; sys.argv = ["envsdk", "schema"]; main()\' | head -c 1',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{", "")


def test_every_own_command_exists() -> None:
    for name, entry in app.OWN.items():
        assert callable(app.load_command(name, entry)) or isinstance(app.load_command(name, entry), typer.Typer)


def test_version_is_printed(capsys) -> None:
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out.strip().count(".") == 2


@pytest.mark.parametrize(
    ("error", "code", "place"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b"), "no_such_file", "a/b"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", b"a/b"), "not_a_folder", "a/b"),
        (PermissionError(errno.EACCES, "Permission denied", "a", None, "b"), "permission_denied", "a -> b"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", ""),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a"), "system_refused", "a"),
        (OSError("only words"), "system_refused", ""),
    ],
)
def test_what_the_system_refuses_is_no_fault_of_the_program(command, capsys, error, code: str, place: str) -> None:
    command(raising(error))
    assert app.run(["probe"]) == 4
    said = capsys.readouterr().err
    assert said.startswith(f"error [{code}]{f' {place}:' if place else ''}")
    assert "\n  fix: " in said
