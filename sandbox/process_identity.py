"""Who started something, in a form a later process can check: process number, its start time,
and the boot it belongs to.
"""

import os
from pathlib import Path


def started(pid: int) -> str:
    """When a process began, in ticks since boot; "" when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def boot() -> str:
    """The identity of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def namespace() -> str:
    """The space our process numbers count in: two workers in containers may share a daemon, but
    not their numbers.
    """
    return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")


def me() -> str:
    """This process."""
    return f"{boot()}/{namespace()}/{os.getpid()}/{started(os.getpid())}"


def alive(owner: str) -> bool | None:
    """Whether an owner still lives; None when that cannot be seen from here."""
    parts = owner.split("/")
    if len(parts) != 4:
        return None
    its_boot, space, pid, began = parts
    if its_boot != boot():
        return None if space != namespace() else False
    if space != namespace():
        return None
    return pid.isdigit() and started(int(pid)) == began
