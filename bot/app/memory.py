"""What a process that lives for weeks does about its memory."""

import ctypes
import gc
from contextlib import suppress

_ARENA_MAX = -8


def one_heap() -> None:
    """Let every thread allocate from one heap. The C library would give each a heap of its own,
    which keeps what its largest run needed; Python lets one thread allocate at a time anyway.
    """
    with suppress(OSError, AttributeError):  # other C libraries have one heap, or none to choose
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def give_back() -> None:
    """Return to the system what is free within the heap: a run's large texts come and go between
    small things that stay, and the C library returns only what is free at the heap's end.
    """
    with suppress(OSError, AttributeError):  # likewise
        ctypes.CDLL(None).malloc_trim(0)


def spare_old_objects() -> None:
    """Let the collector of cycles pass over what is here to stay: modules, classes and schemas. To
    look through them takes 0.1 s, in which no delivery is answered.
    """
    gc.collect()
    gc.freeze()
