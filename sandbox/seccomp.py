"""A small seccomp filter for bubblewrap: refuses system calls that reach for the kernel rather
than for the run's own work, and every socket family but those that programs need.
"""

import platform
import struct

# Numbers from the kernel's tables (arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h);
# from 424 on both agree.
BOTH = {
    "pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
}  # fmt: skip
X86_64 = {
    "ptrace": 101, "syslog": 103, "vhangup": 153, "pivot_root": 155, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "finit_module": 313, "kexec_file_load": 320,
    "bpf": 321, "userfaultfd": 323, "process_vm_readv": 310, "process_vm_writev": 311,
}  # fmt: skip
AARCH64 = {
    "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "reboot": 142, "settimeofday": 170,
    "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
# machine: (audit architecture, refused calls, clone, socket, socketpair)
MACHINES = {
    "x86_64": (0xC000003E, X86_64, 56, 41, 53),
    "aarch64": (0xC00000B7, AARCH64, 220, 198, 199),
}
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # the last for interfaces and addresses only
FAMILIES = (UNIX, INET, INET6)
ROUTE = 0
CLONE3, NEW_USER_NAMESPACE, X32 = 435, 0x10000000, 0x40000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
FIRST, THIRD = 16, 32  # where the lower halves of a call's arguments lie
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def program(machine: str = "") -> bytes:
    """The filter as the kernel takes it, or b"" on a machine it was not written for."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return b""
    architecture, refused, clone, socket, pair = known
    lines = [
        _line(LOAD, 4),
        _line(JUMP_EQ, architecture, yes=1),
        _line(RETURN, REFUSE | EPERM),
        _line(LOAD, 0),
        _line(JUMP_GE, X32, no=1),
        _line(RETURN, REFUSE | EPERM),
        _line(
            JUMP_EQ, CLONE3, no=1
        ),  # its flags lie in memory a filter cannot read; libc falls back to clone
        _line(RETURN, REFUSE | ENOSYS),
    ]
    for number in sorted({*refused.values(), *BOTH.values()}):
        lines += [_line(JUMP_EQ, number, no=1), _line(RETURN, REFUSE | EPERM)]
    sockets = _families()
    lines += [
        _line(JUMP_EQ, socket, yes=1),
        _line(JUMP_EQ, pair, no=len(sockets)),
        *sockets,
        _line(JUMP_EQ, clone, no=3),
        _line(LOAD, FIRST),
        _line(JUMP_SET, NEW_USER_NAMESPACE, no=1),
        _line(RETURN, REFUSE | EPERM),
        _line(RETURN, ALLOW),
    ]
    return b"".join(lines)


def _families() -> list[bytes]:
    """Allow a socket of a known family, and of netlink the one that lists interfaces."""
    known = [
        _line(JUMP_EQ, family, yes=len(FAMILIES) - at + 3) for at, family in enumerate(FAMILIES)
    ]
    return [
        _line(LOAD, FIRST),
        *known,
        _line(JUMP_EQ, NETLINK, no=2),
        _line(LOAD, THIRD),
        _line(JUMP_EQ, ROUTE, yes=1),
        _line(RETURN, REFUSE | EAFNOSUPPORT),
        _line(RETURN, ALLOW),
    ]
