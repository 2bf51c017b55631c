"""Runs a program as the main one and writes down what it reaches: how often each of its own lines ran, on which an exception
arrived or a name held nothing, and the functions that it called, how often and from which line.

Copied into the sandbox beside `sitecustomize.py`; imports nothing but the standard library and nothing of ours. The first
argument is the program, the second one the file for the answer. Tracing makes a program slower, so it is one run of its own.
"""

import ast
import json
import os
import sys
import threading
import types

_MOST = 20000
_LOOKS = 1000
_ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)
_HOLDS = (list, tuple, dict, set, frozenset, str, bytes, range)


class _Seen:
    """What was seen so far. Steps are counted by instruction: a statement over several lines comes back to its first one."""

    def __init__(self, path, watched):
        self.path, self.watched = path, watched
        self.steps, self.called, self.raised, self.empty = {}, {}, set(), set()

    def trace(self, frame, _event, _arg):
        """A trace function that follows the program's own file and sees what is called from there."""
        code, back = frame.f_code, frame.f_back
        if back is not None and back.f_code.co_filename == self.path:
            _count(self.called, (back.f_lineno, code.co_filename, getattr(code, "co_qualname", code.co_name)))
        return self._local if code.co_filename == self.path else None

    def _local(self, frame, event, arg):
        line = frame.f_lineno
        if event == "line":
            if _count(self.steps, (line, id(frame.f_code), frame.f_lasti)) <= _LOOKS:
                self.empty.update((line, name) for name in self.watched.get(line, ()) if _is_empty(frame, name))
        elif event == "exception" and not issubclass(arg[0], _ENDS):
            self.raised.add(line)
        return self._local

    def told(self):
        lines = {}
        for (line, _, _), times in self.steps.items():
            lines[line] = max(times, lines.get(line, 0))
        called = sorted((*key, times) for key, times in self.called.items())
        return {"lines": lines, "called": called, "raised": sorted(self.raised), "empty": sorted(self.empty)}


def _count(counts, key):
    times = counts.get(key, 0) + 1
    if times > 1 or len(counts) < _MOST:
        counts[key] = times
    return times


def _watched(tree):
    """The names that the program reads, by line."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.lineno, set()).add(node.id)
    return found


def _is_empty(frame, name):
    """Whether a name holds a collection or an array of no items."""
    held = frame.f_locals.get(name, frame.f_globals.get(name))
    if type(held) in _HOLDS:
        return not held
    if type(held).__module__ in ("__main__", "builtins"):
        return False
    try:
        sizes = getattr(held, "shape", None)
        return isinstance(sizes, tuple) and any(type(size) is int and size == 0 for size in sizes)
    except Exception:
        return False


def _run(path, code):
    """Run a file as the main program."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def main(entry, answer):
    """Run the program; what it does not catch ends this process as it would end the program."""
    path, answer = os.path.abspath(entry), os.path.abspath(answer)
    with open(path, "rb") as program:
        source = program.read()
    code = compile(source, path, "exec", dont_inherit=True)
    seen = _Seen(path, _watched(ast.parse(source)))
    sys.argv, sys.path[0] = [entry], os.path.dirname(path)
    threading.settrace(seen.trace)
    sys.settrace(seen.trace)
    try:
        _run(path, code)
    finally:
        sys.settrace(None)
        with open(answer, "w") as out:
            json.dump(seen.told(), out)


if __name__ == "__main__":
    main(*sys.argv[1:3])
