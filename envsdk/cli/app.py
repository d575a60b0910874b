"""The one program: finds its commands, and turns whatever goes wrong into one block, one envelope, one exit code.

Commands are mounted by name and imported only when called, so that ``envsdk --help`` is quick and a package whose
extra is missing breaks its own commands alone. Ours are in `OWN`; other packages offer theirs in the entry-point group
``envsdk.commands``, each a function or a `typer.Typer`. A command raises `EnvsdkError`, or `typer.Exit` with a code of
`envsdk.cli.envelope`; it prints results on stdout and everything else on stderr.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from envsdk.cli.envelope import GOOD, INTERRUPTED, failure, render
from envsdk.cli.streams import flush_result, use_lenient_streams
from envsdk.errors import EnvsdkError, Interruption, PrerequisiteError, UsageError
from envsdk.refusal import refusal


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """Where a command is found: ``target`` is ``module:name``; ``extra`` the optional dependencies it may lack."""

    summary: str
    target: str
    extra: str = ""


OWN: dict[str, CommandEntry] = {
    "init": CommandEntry("Write a task that checks green.", "envsdk.cli.init:init"),
    "draw": CommandEntry("Draw tasks of a family.", "envsdk.cli.draw:draw"),
    "check": CommandEntry("Prove the verifiers of tasks.", "envsdk.cli.check:check"),
    "run": CommandEntry("Run episodes of a task with a policy.", "envsdk.cli.run:run"),
    "score": CommandEntry("Score stored episodes again with another verifier.", "envsdk.cli.score:score"),
    "outcomes": CommandEntry("Apply the outcome table to stored episodes again.", "envsdk.cli.outcomes:app"),
    "import": CommandEntry("Read tasks from another format.", "envsdk.cli.import_:app"),
    "export": CommandEntry("Write tasks in another format.", "envsdk.cli.export:app"),
    "images": CommandEntry("List and prune built images.", "envsdk.cli.images:app"),
    "schema": CommandEntry("Print the JSON Schema of a task.", "envsdk.cli.schema:schema"),
    "conform": CommandEntry("Run case files with right answers.", "envsdk.cli.conform:conform"),
    "doctor": CommandEntry("Look for what is missing on this machine.", "envsdk.cli.doctor:doctor"),
}
_SUMMARIES = {
    "registry": "Keep, query, calibrate and serve tasks.",
    "train": "Train a model on the tasks a query finds.",
    "eval": "Evaluate a model on a task set.",
    "report": "Write a run's report as one HTML page.",
    "bench": "Measure time to trainable batch.",
}


def commands() -> dict[str, CommandEntry]:
    """Every command by name: ours, then those of installed packages; imports none of them."""
    found = dict(OWN)
    for entry in sorted(entry_points(group="envsdk.commands"), key=lambda item: item.name):
        package = entry.value.partition(":")[0].partition(".")[0]
        found.setdefault(entry.name, CommandEntry(_SUMMARIES.get(entry.name, f"From {package}."), entry.value, package))
    return found


def load_command(name: str, entry: CommandEntry) -> Callable[..., Any] | typer.Typer:
    """Import a command.

    Raises:
        PrerequisiteError: it needs a package that is not installed (code ``extra_missing``).
    """
    module, _, attribute = entry.target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
    except ModuleNotFoundError as error:
        extra = f"pip install 'envsdk[{entry.extra}]'" if entry.extra else f"pip install {error.name}"
        raise PrerequisiteError(
            f"the command needs the module {error.name}", code="extra_missing", hint=extra, where=f"envsdk {name}"
        ) from error


def build_app(called: str | None = None) -> typer.Typer:
    """The program with every command listed and, of them, only ``called`` imported."""
    app = typer.Typer(
        name="envsdk",
        no_args_is_help=True,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for name, entry in commands().items():
        target = load_command(name, entry) if name == called else _placeholder(entry)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=name, help=entry.summary)
        else:
            app.command(name, short_help=entry.summary)(target)
    return app


def _placeholder(entry: CommandEntry) -> Callable[[], None]:
    def uncalled() -> None:
        raise AssertionError(f"{entry.target} was listed, not called")

    uncalled.__doc__ = entry.summary
    return uncalled


def _print_version(value: bool) -> None:
    if value:
        print(version("envsdk"))
        raise typer.Exit(GOOD)


def _root(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Author RL environments and verifiers, measure their difficulty, train on them.

    First steps: envsdk init my-task, then envsdk check my-task.
    --debug, anywhere, shows the traceback of an error. Exit codes: 0 good, 1 what was checked is bad, 2 usage,
    3 a prerequisite is missing, 4 could not decide, 130 interrupted.
    """


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Nothing but `SystemExit` of a hard exit passes this edge."""
    ours = _ours(args)
    debug = "--debug" in ours or bool(os.environ.get("ENVSDK_DEBUG"))
    rest = [arg for arg in ours if arg != "--debug"] + list(args[len(ours) :])
    called = next((arg for arg in ours if not arg.startswith("-")), None)
    try:
        code = _exit_code(build_app(called)(args=rest or ["--help"], prog_name="envsdk", standalone_mode=False))
        flush_result()
    except KeyboardInterrupt:  # while a command is imported; later typer turns it into the exit code
        code = INTERRUPTED
    except (EnvsdkError, TyperException, typer.Abort, OSError) as error:
        return _report(_as_ours(error), as_json="--json" in ours, debug=debug)
    except Exception as error:  # noqa: BLE001 - the edge: a bug becomes a code and a way to see its traceback
        broken = EnvsdkError(
            f"{type(error).__name__}: {error}", code="internal_error", hint="run again with --debug and report it"
        )
        return _report(broken, as_json="--json" in ours, debug=debug)
    return interrupted(args) if code == INTERRUPTED else code


def interrupted(args: Sequence[str]) -> int:
    """Say that a command line was interrupted which had nothing more to say of it; returns the exit code."""
    return _report(Interruption("interrupted", hint="run it again"), as_json="--json" in _ours(args), debug=False)


def _ours(args: Sequence[str]) -> list[str]:
    """What stands before ``--``; the rest is the command's alone."""
    return list(args[: args.index("--")]) if "--" in args else list(args)


def _exit_code(result: Any) -> int:
    return result if isinstance(result, int) and not isinstance(result, bool) else GOOD


def _as_ours(error: Exception) -> EnvsdkError:
    if isinstance(error, EnvsdkError):
        return error
    if isinstance(error, OSError):
        return refusal(error)
    if isinstance(error, typer.Abort):
        return EnvsdkError("aborted", code="aborted", hint="run it again")
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "envsdk")
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if message.startswith("Usage:"):
        return UsageError(f"no command given\n\n{message.rstrip()}\n", code="no_command", hint="name a command")
    hint = f"{path} --help"
    if getattr(error, "option_name", "") and _takes_text(context):
        hint += f"; what begins with a dash and is no option stands after --, as in {path} -- -tag:slow"
    return UsageError(message, hint=hint)


def _takes_text(context: Any) -> bool:
    """Whether the command that was called takes a query, which may begin with a dash."""
    parameters = getattr(getattr(context, "command", None), "params", ())
    return any(getattr(one, "metavar", None) == "QUERY" and one.param_type_name == "argument" for one in parameters)


def _report(error: EnvsdkError, *, as_json: bool, debug: bool) -> int:
    if as_json:
        with suppress(OSError):  # stdout itself may be what was refused: stderr says so
            print(render(failure(error, **(error.result if isinstance(error, Interruption) else {}))))
            flush_result()
    place = f" {error.where}:" if error.where else ""
    print(f"error [{error.code}]{place} {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  fix: {error.hint}", file=sys.stderr)
    if debug:
        traceback.print_exc(file=sys.stderr)
    return error.exit_code


def main() -> None:
    """Run the process's own command line and end the process."""
    use_lenient_streams()
    code = run(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # all is said: a further one ends the process and says nothing
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(OSError):  # what an error left unwritten: it has its exit code
        flush_result()
    sys.exit(code)
