"""Writes down which wanted functions a program enters, which of its own lines run, which of its
files it opens, and which file each of its modules comes from.

Copied into the sandbox as `_reprise_reached.py` for the one run that asks for it; imports nothing
but the standard library and nothing of ours. `REPRISE_WANTED` is a JSON list of [path, function]:
a function counts when its file ends with the path. Its own files lie below the folder that the run
was given, or below `REPRISE_TREE`. Python 3.12 and later tell each function and
line once (PEP 669); earlier ones call a trace function, in this run alone.
"""

import atexit
import json
import os
import sys
import threading
import time

_PATHS_BY_NAME = {}
_FUNCTIONS, _LINES = set(), set()
_OPENED = set()
_EVERY_S = 5
_DUE = [time.monotonic() + _EVERY_S]
_OWN = {}
_START = os.getcwd()
_ROOTS = [os.path.dirname(os.environ.get("REPRISE_TRACE", "")), os.environ.get("REPRISE_TREE", "")]
_ROOTS = [os.path.join(root, "") for root in _ROOTS if root] or [os.path.join(_START, "")]
_MAX_OPENED = 500
_TOOL = 4  # free for anyone: 0, 1, 2 and 5 are a debugger, coverage, a profiler and an optimiser


def _own(path):
    """Where a file of the program itself lies, "" for any other."""
    if path not in _OWN:
        whole = os.path.abspath(os.path.join(_START, path))
        _OWN[path] = "" if path.startswith("<") else _below(whole)
    return _OWN[path]


def _below(whole):
    """A path below the first of the roots that it lies in, "" for one of another place."""
    names = [whole[len(root) :] for root in _ROOTS if whole.startswith(root)]
    return "" if not names or names[0].startswith(".") else names[0]


def _audit(event, args):
    """Note the own files that are opened, and the own folders that are listed (with a slash)."""
    if event not in ("open", "os.listdir", "os.scandir") or len(_OPENED) >= _MAX_OPENED:
        return
    path = args[0] if args else None
    try:
        caller = sys._getframe(1).f_code.co_filename
    except ValueError:
        return  # Python opens the program
    if caller.startswith("<frozen importlib"):
        return  # it looks for modules
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if isinstance(path, str) and not path.endswith(".pyc"):
        name = _below(os.path.abspath(path))
        if name:
            _OPENED.add(name if event == "open" else name + "/")


def _modules():
    """The names of the program's own modules with their files."""
    rows = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and _own(path):
            rows[name] = _own(path)
    # One whose import failed is forgotten: its name is its path from where modules are looked for.
    folders = [_below(os.path.join(os.path.abspath(folder), "")) for folder in sys.path]
    for path in {path for path, _ in _LINES}.difference(rows.values()):
        folder = max((one for one in folders if path.startswith(one)), key=len, default="")
        name = path[len(folder) :].replace("/__init__.py", "").replace("/", ".")
        rows.setdefault(name[:-3] if name.endswith(".py") else name, path)
    return rows


def _enter(code):
    for path in _PATHS_BY_NAME.get(code.co_name, ()):
        if code.co_filename.endswith(path):
            _FUNCTIONS.add((path, code.co_name))


def _write():
    folder = os.environ.get("REPRISE_TRACE", "")
    row = {"entered": sorted(_FUNCTIONS), "lines": sorted(_LINES)}
    row["opened"], row["modules"] = sorted(_OPENED), sorted(_modules().items())
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
        _note(frame.f_code.co_filename, frame.f_lineno)
    return _each_line


def _note(path, number):
    """Note a line. What is known so far is written now and then: the run may be killed."""
    line = (_own(path), number)
    if line not in _LINES:
        _LINES.add(line)
        if time.monotonic() > _DUE[0]:
            _write()
            _DUE[0] = time.monotonic() + _EVERY_S


def _monitor(monitoring):
    events = monitoring.events

    def start(code, _offset):
        _enter(code)
        if _own(code.co_filename):
            monitoring.set_local_events(_TOOL, code, events.LINE)
        return monitoring.DISABLE

    def line(code, number):
        _note(code.co_filename, number)
        return monitoring.DISABLE

    monitoring.use_tool_id(_TOOL, "reprise")
    monitoring.register_callback(_TOOL, events.PY_START, start)
    monitoring.register_callback(_TOOL, events.LINE, line)
    monitoring.set_events(_TOOL, events.PY_START)


for _path, _function in json.loads(os.environ["REPRISE_WANTED"]):
    _PATHS_BY_NAME.setdefault(_function, []).append(_path)
atexit.register(_write)
sys.addaudithook(_audit)
if hasattr(sys, "monitoring"):
    _monitor(sys.monitoring)
else:
    threading.settrace(_trace)
    sys.settrace(_trace)
