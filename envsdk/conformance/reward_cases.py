"""Judge of ``reward_files``: lays out a results directory, removes what is stale, lays out what was written, reads."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, SkipCaseError
from envsdk.errors import VerifierError
from envsdk.verifying.reward import read_reward, remove_stale

KNOWN = frozenset({"mode", "range", "exit_code", "before", "written", "before_outside"})


def judge_reward_file(case: Case) -> None:
    """Raise AssertionError where the reader returns something else than the case expects."""
    known_fields(case, KNOWN, {"reward", "rewards", "error", "outside_kept"})
    given, expected = case.body["input"], case.body["expected"]
    with tempfile.TemporaryDirectory(prefix="envsdk-reward-") as folder:
        results, outside = Path(folder, "results"), Path(folder, "outside")
        results.mkdir()
        outside.mkdir()
        _lay_out(outside, given.get("before_outside", {}))
        _lay_out(results, given.get("before", {}))
        remove_stale(results)
        _lay_out(results, given.get("written", {}))
        found = _read(results, given)
        kept = {path.name: path.read_bytes().decode() for path in outside.iterdir()}
    wanted = {key: value for key, value in expected.items() if key != "outside_kept"}
    assert found == wanted, f"got {found}, expected {wanted}"
    if "outside_kept" in expected:
        assert (kept == given.get("before_outside", {})) == expected["outside_kept"], f"files outside are now {kept}"


def _read(results: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    low, high = given.get("range", (0, 1))
    try:
        reward = read_reward(
            results, low=low, high=high, exit_code=given.get("exit_code", 0), mode=given.get("mode", "native")
        )
    except VerifierError as error:
        return {"error": error.code}
    return {"reward": reward.reward, "rewards": reward.rewards}


def _lay_out(folder: Path, contents: Mapping[str, Any]) -> None:
    for name, content in contents.items():
        path = folder / name
        if isinstance(content, str):
            path.write_bytes(content.encode())
            continue
        (form, value), *more = content.items()
        if more:
            raise SkipCaseError(f"content {sorted(content)} of {name}")
        match form:
            case "base64":
                path.write_bytes(base64.b64decode(value))
            case "fill":
                path.write_bytes((value["head"] + value["unit"] * value["times"] + value["tail"]).encode())
            case "directory":
                path.mkdir()
                _lay_out(path, value)
            case "symlink":
                path.symlink_to(value)
            case "fifo":
                os.mkfifo(path)
            case _:
                raise SkipCaseError(f"content {form!r} of {name}")
