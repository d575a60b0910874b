"""A command by how it ends and what it prints.

Runs what an agent may have written, so it belongs into a verifier that runs in a sandbox
(``@verifier(kind="sandbox")``, or a script): never where the machine's own files lie. Its process group ends with it;
what it puts into a session of its own ends with the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from envsdk.graders.code_output import code_output
from envsdk.graders.verdict import Verdict, judged

MAX_OUTPUT_BYTES = 8 << 20


def command(
    words: Sequence[str],
    *,
    stdin: str = "",
    output: str | None = None,
    exit_code: int = 0,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    user: str = "agent",
    timeout_s: float = 10.0,
) -> Verdict:
    """Right where the command ends by itself with ``exit_code`` and, if asked, prints ``output``.

    Args:
        words: the program and its arguments; no shell. A program that is not there is ``no_answer``.
        stdin: given to it, UTF-8.
        output: what it must write to stdout, compared as by `code_output`; at most 8 MiB are looked at.
        exit_code: that it must end with.
        cwd: where it runs.
        env: variables beside a plain PATH.
        user: who it runs as where the verifier is root, so that it reads no tests; where there is none, ``nobody``.
        timeout_s: seconds, after which it is ended and ``incorrect``.
    """
    variables = {"PATH": os.defpath, "LANG": "C.UTF-8", **(env or {})}
    # A file, not a pipe: what the command leaves running cannot hold the verifier by holding a pipe open.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
        given.write(stdin.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                list(words),
                stdin=given,
                stdout=written,
                stderr=subprocess.DEVNULL,
                cwd=cwd,
                env=variables,
                start_new_session=True,
                **_identity(user),
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            return "no_answer"
        try:
            ended = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return "incorrect"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        written.seek(0)
        printed = written.read(MAX_OUTPUT_BYTES + 1)
    if ended != exit_code or len(printed) > MAX_OUTPUT_BYTES:
        return "incorrect"
    if output is None:
        return "correct"
    return judged(code_output(printed.decode("utf-8", "replace"), output) == "correct")


def _identity(name: str) -> dict[str, Any]:
    if os.geteuid() != 0 or name == "root":
        return {}
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        found = pwd.getpwnam("nobody")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": ()}
