"""The system-call filter of bubblewrap sandboxes, as classic BPF made here: no library, no compiler.

Refused with EPERM is what reaches beyond a sandbox and no ordinary program needs: mounts and namespaces, kernel
modules, keys, bpf, perf, clocks, reboot, raw I/O ports, file handles, io_uring; also new user namespaces through clone,
and the terminal ioctls that push input. A foreign architecture's calls get ENOSYS, and so does clone3, whose flags a
filter cannot see (C libraries then fall back to clone).
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from types import MappingProxyType

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24
_CLONE_NEWUSER = 0x10000000
_TERMINAL_IOCTLS = (0x5412, 0x541C)

_X86_64: Mapping[str, int] = {
    "acct": 163, "add_key": 248, "adjtimex": 159, "bpf": 321, "chroot": 161, "clock_adjtime": 305, "clock_settime": 227,
    "create_module": 174, "delete_module": 176, "finit_module": 313, "fsconfig": 431, "fsmount": 432, "fsopen": 430,
    "fspick": 433, "init_module": 175, "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425,
    "ioperm": 173, "iopl": 172, "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212,
    "mount": 165, "mount_setattr": 442, "move_mount": 429, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "open_tree": 428, "perf_event_open": 298, "pivot_root": 155, "quotactl": 179, "quotactl_fd": 443, "reboot": 169,
    "request_key": 249, "setdomainname": 171, "sethostname": 170, "setns": 308, "settimeofday": 164, "swapoff": 168,
    "swapon": 167, "syslog": 103, "umount2": 166, "unshare": 272, "userfaultfd": 323,
}  # fmt: skip
_AARCH64: Mapping[str, int] = {
    "acct": 89, "add_key": 217, "adjtimex": 171, "bpf": 280, "chroot": 51, "clock_adjtime": 266, "clock_settime": 112,
    "delete_module": 106, "finit_module": 273, "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433,
    "init_module": 105, "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425, "kexec_file_load": 294,
    "kexec_load": 104, "keyctl": 219, "lookup_dcookie": 18, "mount": 40, "mount_setattr": 442, "move_mount": 429,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "open_tree": 428, "perf_event_open": 241, "pivot_root": 41,
    "quotactl": 60, "quotactl_fd": 443, "reboot": 142, "request_key": 218, "setdomainname": 162, "sethostname": 161,
    "setns": 268, "settimeofday": 170, "swapoff": 225, "swapon": 224, "syslog": 116, "umount2": 39, "unshare": 97,
    "userfaultfd": 282,
}  # fmt: skip
# machine -> (audit architecture, clone, clone3, ioctl, refused calls, first number of a foreign ABI)
_MACHINES = MappingProxyType(
    {
        "x86_64": (0xC000003E, 56, 435, 16, _X86_64, 0x40000000),
        "aarch64": (0xC00000B7, 220, 435, 29, _AARCH64, None),
    }
)


def refused_calls(machine: str | None = None) -> frozenset[str]:
    """Names of the calls refused outright on a machine; empty where the machine has no table."""
    entry = _MACHINES.get(machine or platform.machine())
    return frozenset(entry[4]) if entry else frozenset()


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def filter_program(machine: str | None = None) -> bytes:
    """The filter as the kernel takes it (an array of ``struct sock_filter``); empty where the machine has no table."""
    entry = _MACHINES.get(machine or platform.machine())
    if entry is None:
        return b""
    arch, clone, clone3, ioctl, refused, foreign = entry
    eperm, enosys, allow = _op(_RET, _ERRNO | _EPERM), _op(_RET, _ERRNO | _ENOSYS), _op(_RET, _ALLOW)
    program = [_op(_LD, _ARCH), _op(_JEQ, arch, 1, 0), enosys, _op(_LD, _NR)]
    if foreign is not None:
        program += [_op(_JGE, foreign, 0, 1), enosys]
    for number in sorted(refused.values()):
        program += [_op(_JEQ, number, 0, 1), eperm]
    program += [_op(_JEQ, clone3, 0, 1), enosys]
    program += [_op(_JEQ, clone, 0, 4), _op(_LD, _ARG0), _op(_JSET, _CLONE_NEWUSER, 0, 1), eperm, allow]
    program += [_op(_JEQ, ioctl, 0, 4), _op(_LD, _ARG1)]
    program += [_op(_JEQ, _TERMINAL_IOCTLS[0], 1, 0), _op(_JEQ, _TERMINAL_IOCTLS[1], 0, 1), eperm, allow]
    return b"".join(program)
