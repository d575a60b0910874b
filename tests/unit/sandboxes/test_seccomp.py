"""The filter, run by a small interpreter of classic BPF over made-up system calls."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes import seccomp

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(machine: str, number: int, *, arch: int, args: tuple[int, ...] = ()) -> int:
    data = struct.pack("<IIQ6Q", number, arch, 0, *args, *(0,) * (6 - len(args)))
    program = seccomp.filter_program(machine)
    lines = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, value = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize(("machine", "arch"), [("x86_64", X86), ("aarch64", ARM)])
def test_every_named_call_is_refused(machine: str, arch: int) -> None:
    table = seccomp._MACHINES[machine][4]
    assert {verdict(machine, number, arch=arch) for number in table.values()} == {EPERM}


@pytest.mark.parametrize(
    "name", ["mount", "unshare", "setns", "bpf", "keyctl", "init_module", "io_uring_setup", "kexec_load"]
)
def test_what_reaches_beyond_a_sandbox_is_named(name: str) -> None:
    assert name in seccomp.refused_calls("x86_64")
    assert name in seccomp.refused_calls("aarch64")


@pytest.mark.parametrize("number", [0, 1, 2, 9, 39, 57, 59, 62, 101, 231, 257])
def test_ordinary_calls_pass(number: int) -> None:
    assert verdict("x86_64", number, arch=X86) == ALLOW


@given(st.integers(0, 600))
def test_a_number_is_refused_only_if_the_table_or_a_special_rule_says_so(number: int) -> None:
    refused = set(seccomp._MACHINES["x86_64"][4].values())
    expected = EPERM if number in refused else ENOSYS if number == 435 else ALLOW
    assert verdict("x86_64", number, arch=X86) == expected


def test_foreign_architectures_get_no_call_through() -> None:
    assert verdict("x86_64", 1, arch=0x40000003) == ENOSYS
    assert verdict("aarch64", 64, arch=X86) == ENOSYS


@given(st.integers(0x40000000, 0x40000FFF))
def test_the_other_abi_of_x86_gets_no_call_through(number: int) -> None:
    assert verdict("x86_64", number, arch=X86) == ENOSYS


def test_clone_passes_but_for_new_user_namespaces() -> None:
    assert verdict("x86_64", 56, arch=X86, args=(0x01200011,)) == ALLOW
    assert verdict("x86_64", 56, arch=X86, args=(0x10000011,)) == EPERM


def test_clone3_is_said_not_to_exist_so_that_libraries_fall_back() -> None:
    assert verdict("x86_64", 435, arch=X86) == ENOSYS


def test_pushing_terminal_input_is_refused_and_other_ioctls_pass() -> None:
    assert verdict("x86_64", 16, arch=X86, args=(0, 0x5412)) == EPERM
    assert verdict("x86_64", 16, arch=X86, args=(0, 0x541C)) == EPERM
    assert verdict("x86_64", 16, arch=X86, args=(0, 0x5401)) == ALLOW


def test_an_unknown_machine_has_no_filter_rather_than_a_wrong_one() -> None:
    assert seccomp.filter_program("riscv64") == b""
