"""Writes down which wanted functions a program enters, and which of its own lines run.

Copied into the sandbox as `_reprise_reached.py` for the one run that asks for it; imports nothing
but the standard library and nothing of ours. `REPRISE_WANTED` is a JSON list of [path, function]:
a function counts when its file ends with the path. Python 3.12 and later tell each function and
line once (PEP 669); earlier ones call a trace function, in this run alone.
"""

import atexit
import json
import os
import sys
import threading

_PATHS_BY_NAME = {}
_FUNCTIONS, _LINES = set(), set()
_OWN = {}
_HERE = os.getcwd() + os.sep
_TOOL = 4  # free for anyone: 0, 1, 2 and 5 are a debugger, coverage, a profiler and an optimiser


def _own(path):
    """Where a file of the program itself lies, "" for any other."""
    if path not in _OWN:
        whole = os.path.abspath(os.path.join(_HERE, path))
        inside = whole.startswith(_HERE) and not path.startswith("<")
        name = whole[len(_HERE) :]
        _OWN[path] = name if inside and not name.startswith(".") else ""
    return _OWN[path]


def _enter(code):
    for path in _PATHS_BY_NAME.get(code.co_name, ()):
        if code.co_filename.endswith(path):
            _FUNCTIONS.add((path, code.co_name))


def _write():
    folder = os.environ.get("REPRISE_TRACE", "")
    row = {"entered": sorted(_FUNCTIONS), "lines": sorted(_LINES)}
    path = os.path.join(folder, "reached-%d.json" % os.getpid())
    try:
        with open(path + ".part", "w", encoding="utf-8", errors="replace") as out:
            json.dump(row, out)
        os.replace(path + ".part", path)
    except OSError:
        return


def _trace(frame, event, _arg):
    _enter(frame.f_code)
    return _each_line if _own(frame.f_code.co_filename) else None


def _each_line(frame, event, _arg):
    if event == "line":
        _LINES.add((_own(frame.f_code.co_filename), frame.f_lineno))
    return _each_line


def _monitor(monitoring):
    events = monitoring.events

    def start(code, _offset):
        _enter(code)
        if _own(code.co_filename):
            monitoring.set_local_events(_TOOL, code, events.LINE)
        return monitoring.DISABLE

    def line(code, number):
        _LINES.add((_own(code.co_filename), number))
        return monitoring.DISABLE

    monitoring.use_tool_id(_TOOL, "reprise")
    monitoring.register_callback(_TOOL, events.PY_START, start)
    monitoring.register_callback(_TOOL, events.LINE, line)
    monitoring.set_events(_TOOL, events.PY_START)


for _path, _function in json.loads(os.environ["REPRISE_WANTED"]):
    _PATHS_BY_NAME.setdefault(_function, []).append(_path)
atexit.register(_write)
if hasattr(sys, "monitoring"):
    _monitor(sys.monitoring)
else:
    threading.settrace(_trace)
    sys.settrace(_trace)
