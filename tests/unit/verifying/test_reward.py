"""The reward-file contract, beyond the handed cases."""

from __future__ import annotations

import json
import math
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import VerifierError
from envsdk.verifying.reward import CODES, MAX_BYTES, ResultFile, parse_results, read_reward, remove_stale


def code_of(folder: Path, **options: Any) -> str:
    with pytest.raises(VerifierError) as caught:
        read_reward(folder, **options)
    return caught.value.code


def parse(json_data: bytes | None = None, text: bytes | None = None, *, low: float = 0, high: float = 1) -> Any:
    found = [
        ResultFile(name, regular=True, size=len(data), data=data)
        for name, data in (("reward.json", json_data), ("reward.txt", text))
        if data is not None
    ]
    try:
        reward = parse_results(found, low=low, high=high)
    except VerifierError as error:
        return error.code
    return reward.reward


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # The order of faults: the first that applies is the one that is named.
        (b'{"reward": true, "reward": 1}', "duplicate_key"),
        (b'{"reward": NaN, "reward": 1}', "duplicate_key"),
        (b'{"a": {"x": 1, "x": 2}}', "duplicate_key"),
        (b'[{"x": 1, "x": 2}]', "duplicate_key"),
        (b'{"reward": NaN, "b": true}', "wrong_type_reward"),
        (b'{"a": 1, "b": Infinity}', "non_finite_reward"),
        (b'{"a": 5, "b": 7}', "ambiguous_reward"),
        (b'{"reward": 1, "reward": 1', "malformed_reward"),
        (b"{} x", "malformed_reward"),
        (b" {} ", "empty_reward"),
        (b"\x00", "malformed_reward"),
        (b"\x0c", "malformed_reward"),
        # What is no JSON though Python's reader takes it, or nearly.
        (b"+1", "malformed_reward"),
        (b".5", "malformed_reward"),
        (b"1.", "malformed_reward"),
        (b"-NaN", "malformed_reward"),
        (b"nan", "malformed_reward"),
        (b"'1'", "malformed_reward"),
        (b'{"reward": 1} // fine', "malformed_reward"),
        (b'{"re\tward": 1}', "malformed_reward"),
        (b'{"reward" 1}', "malformed_reward"),
        (b"{reward: 1}", "malformed_reward"),
        (b'{"\\x41": 1}', "malformed_reward"),
        (b'{"reward": 1,, "b": 2}', "malformed_reward"),
        (b'"\\ud800"', "wrong_type_reward"),
        (b'{"\\ud800": 1}', "malformed_reward"),
        (b'{"a": {"\\udc00": 1}}', "malformed_reward"),
        (b'{"\\ud83d\\ude00": 1}', 1.0),
        (b"[" * 64 + b"]" * 64, "wrong_type_reward"),
        (b"[" * 65 + b"]" * 65, "malformed_reward"),
        (b"[" * 500_000, "malformed_reward"),
        # Numbers: the nearest double decides.
        (b"1e-400", 0.0),
        (b"-0.0", 0.0),
        (b"0.99999999999999999999", 1.0),
        (b"1.0000000000000000000001", 1.0),
        (b"1e309", "non_finite_reward"),
        (b"1" * 400, "non_finite_reward"),
        (b'{"REWARD": 0.5}', 0.5),
    ],
)
def test_json_is_read_strictly(data: bytes, expected: Any) -> None:
    assert parse(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"1.", 1.0),
        (b"-0", 0.0),
        (b"+.5e0", 0.5),
        (b"1e-400", 0.0),
        (b"+nan", "non_finite_reward"),
        (b"-INF", "non_finite_reward"),
        (b"infinit", "malformed_reward"),
        (b".", "malformed_reward"),
        (b"1e", "malformed_reward"),
        (b"e1", "malformed_reward"),
        (b"--1", "malformed_reward"),
        (b"1 \x0b", "malformed_reward"),
        (b"1\x00", "malformed_reward"),
        (b"\xff", "malformed_reward"),
        (b"0x1p0", "malformed_reward"),
    ],
)
def test_text_is_one_number(data: bytes, expected: Any) -> None:
    assert parse(text=data) == expected


def test_the_json_file_is_judged_to_its_end_before_the_text_file() -> None:
    assert parse(b"5", b"words") == "out_of_range_reward"
    assert parse(b'{"a": 1, "b": 2}', b"") == "ambiguous_reward"
    assert parse(b"1", b"2") == "out_of_range_reward"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_survives_both_files(value: float) -> None:
    limits = {"low": -math.inf, "high": math.inf}
    assert parse(json.dumps(value).encode(), repr(value).encode(), **limits) == value


@given(st.binary(max_size=64))
def test_any_bytes_are_a_number_in_range_or_a_code_of_the_contract(data: bytes) -> None:
    for heard in (parse(data), parse(text=data)):
        assert heard in CODES or 0.0 <= heard <= 1.0


names = st.sampled_from(["reward", "a", "b"])
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=6,
)


@given(values)
def test_well_formed_json_is_never_malformed(value: Any) -> None:
    assert parse(json.dumps(value).encode()) not in {"malformed_reward", "duplicate_key"}


def test_a_planted_pipe_is_removed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reward.txt")
    remove_stale(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "reward-details.json").write_text("{}")
    (tmp_path / "reward.txt").write_text("1")
    remove_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["reward-details.json"]


def test_a_pipe_nobody_writes_to_does_not_hold_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reward.json")
    assert code_of(tmp_path) == "malformed_reward"


def test_a_socket_is_malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("reward.txt")
        assert code_of(tmp_path) == "malformed_reward"


def test_a_link_to_nothing_is_malformed_not_missing(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").symlink_to("nowhere")
    assert code_of(tmp_path) == "malformed_reward"


def test_kind_is_judged_before_size_and_size_before_content(tmp_path: Path) -> None:
    (tmp_path / "reward.json").write_bytes(b"{" * (MAX_BYTES + 1))
    assert code_of(tmp_path) == "oversize_reward"


def test_a_sparse_giant_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "reward.txt").open("wb") as file:
        file.truncate(1 << 40)
    assert code_of(tmp_path) == "oversize_reward"


def test_a_results_directory_that_is_not_there_holds_no_reward(tmp_path: Path) -> None:
    assert code_of(tmp_path / "none") == "missing_reward"


def test_native_mode_trusts_nothing_of_a_verifier_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("1")
    assert code_of(tmp_path, exit_code=None) == "verifier_exit"
    assert read_reward(tmp_path, exit_code=None, mode="harbor").reward == 1.0


def test_errors_say_which_file_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("50%")
    with pytest.raises(VerifierError) as caught:
        read_reward(tmp_path)
    assert "reward.txt" in caught.value.where
    assert "50%" in caught.value.message
    assert caught.value.hint
