"""Runs a program as the main one and writes down what it reaches: its own lines that ran, and the functions that it called.

Copied into the sandbox beside `sitecustomize.py`; imports nothing but the standard library and nothing of ours. The first
argument is the program, the second one the file for the answer. Tracing makes a program slower, so it is one run of its own.
"""

import json
import os
import sys
import threading
import types

_MOST = 20000


def _following(path, lines, called):
    """A trace function that follows the program's own file and sees what is called from there."""

    def local(frame, event, _arg):
        if event == "line":
            lines.add(frame.f_lineno)
        return local

    def trace(frame, _event, _arg):
        code, back = frame.f_code, frame.f_back
        if back is not None and back.f_code.co_filename == path and len(called) < _MOST:
            called.add((back.f_lineno, code.co_filename, getattr(code, "co_qualname", code.co_name)))
        return local if code.co_filename == path else None

    return trace


def _run(path):
    """Run a file as the main program."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def main(entry, answer):
    """Run the program; what it does not catch ends this process as it would end the program."""
    path, answer = os.path.abspath(entry), os.path.abspath(answer)
    lines, called = set(), set()
    sys.argv, sys.path[0] = [entry], os.path.dirname(path)
    trace = _following(path, lines, called)
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        _run(path)
    finally:
        sys.settrace(None)
        with open(answer, "w") as out:
            json.dump({"lines": sorted(lines), "called": sorted(called)}, out)


if __name__ == "__main__":
    main(*sys.argv[1:3])
