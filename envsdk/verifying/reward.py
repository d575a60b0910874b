"""The reward-file contract: what a verifier may say, and what is heard.

A verifier reports by ``reward.json`` and/or ``reward.txt`` in the results directory. Nothing is ever read as 0 except a
number that is 0; everything else is a `VerifierError` whose code is one of `CODES`, the first that applies, the JSON
file before the text file. One parser serves results on this machine and inside a sandbox (`envsdk.verifying.results`).
"""

from __future__ import annotations

import math
import os
import re
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from envsdk.errors import VerifierError
from envsdk.verifying.reward_json import parse_reward_json, reward_error

NAMES = ("reward.json", "reward.txt")
MAX_BYTES = 1 << 20
CODES = (
    "verifier_exit",
    "missing_reward",
    "malformed_reward",
    "oversize_reward",
    "empty_reward",
    "duplicate_key",
    "wrong_type_reward",
    "non_finite_reward",
    "ambiguous_reward",
    "out_of_range_reward",
    "conflicting_rewards",
)
Mode = Literal["native", "harbor"]
_BLANK = b" \t\r\n"
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward that counts: the headline, and every named number beside it."""

    reward: float
    rewards: dict[str, float]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One reward file as found: ``size`` in bytes; ``data`` is empty where the file was not to be read."""

    name: str
    regular: bool
    size: int = 0
    data: bytes = field(default=b"", repr=False)


def read_reward(
    results_dir: Path, *, low: float = 0.0, high: float = 1.0, exit_code: int | None = 0, mode: Mode = "native"
) -> Reward:
    """Read the reward that lies in a local results directory.

    Args:
        results_dir: where the verifier wrote; links under the reward names are never followed.
        low: least headline allowed.
        high: greatest headline allowed.
        exit_code: of the verifier; `None` where a signal ended it.
        mode: ``native``: an exit status other than 0 is an error. ``harbor``: only the files count.

    Raises:
        VerifierError: there is no usable reward; ``code`` is one of `CODES`.
    """
    check_exit(exit_code, mode, where=str(results_dir))
    found = [result for name in NAMES if (result := _open_result(results_dir / name)) is not None]
    return parse_results(found, low=low, high=high, where=str(results_dir))


def check_exit(exit_code: int | None, mode: Mode, *, where: str = "") -> None:
    """Raise `VerifierError` ``verifier_exit`` where the contract does not consult the files at all."""
    if mode == "native" and exit_code != 0:
        how = "by a signal" if exit_code is None else f"with status {exit_code}"
        raise VerifierError(
            f"the verifier ended {how}, so its reward files are not read",
            code="verifier_exit",
            hint='end with status 0 whatever the reward, or set exit_status = "harbor": the files alone count then',
            where=where,
        )


def parse_results(found: list[ResultFile], *, low: float, high: float, where: str = "") -> Reward:
    """The reward that the files give together; ``found`` is in the order of `NAMES`.

    Raises:
        VerifierError: as `read_reward`.
    """
    if not found:
        raise reward_error("missing_reward", "the verifier left neither reward.json nor reward.txt", where)
    heard = []
    for result in found:
        reward = _parse(result, where)
        if not low <= reward.reward <= high:
            raise reward_error("out_of_range_reward", f"reward {reward.reward!r} is outside [{low:g}, {high:g}]", where)
        heard.append(reward)
    if len(heard) == 2 and heard[0].reward != heard[1].reward:
        message = f"reward.json says {heard[0].reward!r}, reward.txt says {heard[1].reward!r}"
        raise reward_error("conflicting_rewards", message, where)
    return heard[0]


def remove_stale(results_dir: Path) -> None:
    """Remove whatever lies under the reward names: file, pipe, directory and its content, a link but not its target."""
    for name in NAMES:
        path = results_dir / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        else:
            path.unlink()


def _open_result(path: Path) -> ResultFile | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return ResultFile(path.name, regular=False)
        # A link or a pipe may take the file's place after that look: neither may lead or hold the reader.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # a link after all, or a file that may not be read
        return ResultFile(path.name, regular=False)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return ResultFile(path.name, regular=False)
        data = file.read(MAX_BYTES) if status.st_size <= MAX_BYTES else b""
        return ResultFile(path.name, regular=True, size=max(status.st_size, len(data)), data=data)


def _parse(result: ResultFile, where: str) -> Reward:
    place = f"{where}/{result.name}" if where else result.name
    if not result.regular:
        raise reward_error("malformed_reward", "not a regular file", place)
    if result.size > MAX_BYTES:
        raise reward_error("oversize_reward", f"{result.size} bytes; at most {MAX_BYTES} are read", place)
    if not result.data.strip(_BLANK):
        raise reward_error("empty_reward", "the file is blank", place)
    if result.name == "reward.txt":
        value = _number(result.data.strip(_BLANK), place)
        return Reward(value, {"reward": value})
    numbers = parse_reward_json(result.data, where=place)
    if "reward" in numbers:
        return Reward(numbers["reward"], numbers)
    if len(numbers) > 1:
        raise reward_error("ambiguous_reward", f"several names {sorted(numbers)[:5]}, none of them 'reward'", place)
    return Reward(next(iter(numbers.values())), numbers)


def _number(text: bytes, where: str) -> float:
    if _NOT_FINITE.fullmatch(text):
        raise reward_error("non_finite_reward", f"{text[:20].decode('ascii')} is not finite", where)
    if not _NUMBER.fullmatch(text):
        raise reward_error("malformed_reward", f"not exactly one number: {text[:40]!r}", where)
    value = float(text)
    if math.isinf(value):
        raise reward_error("non_finite_reward", "the number is beyond the largest double", where)
    return value + 0.0
