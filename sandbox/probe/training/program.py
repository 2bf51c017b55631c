"""Where in the user's program something was made."""

import sys

_MOST_FRAMES = 60
LINES = {}


def main_file():
    return getattr(sys.modules.get("__main__"), "__file__", None)


def line(skip_init=False):
    """The innermost line of the program's main file on the stack; 0 when there is none.
    `skip_init` passes over constructors, which make a model's parts.
    """
    main = main_file()
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return 0
        code = frame.f_code
        if code.co_filename == main and not (skip_init and code.co_name == "__init__"):
            return frame.f_lineno
        frame = frame.f_back
    return 0


def remember(made, skip_init=False):
    """Note where an object is made; a later one at the same address replaces it."""
    LINES[id(made)] = line(skip_init)


def made(thing):
    """The line where an object was made, 0 when that is not known."""
    return LINES.get(id(thing), 0)
