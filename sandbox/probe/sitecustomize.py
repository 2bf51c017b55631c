"""Runs first in every Python of a sandboxed run: seeds the generators and writes down how the
program ended.

Copied into the sandbox and put on PYTHONPATH; imports nothing but the standard library and nothing
of ours. It never raises, draws no random numbers, and changes nothing that the program can see
beyond the seeds. `REPRISE_TRACE` names the folder for `trace-<pid>.json`, `REPRISE_SEED` the seed,
`REPRISE_STACKS_AFTER` the seconds after which all stacks are printed (for hangs); with
`REPRISE_WANTED`, what the program reaches is written down too (`reached.py`).
"""

import os
import sys

_FOLDER = os.environ.get("REPRISE_TRACE")
_SEED = os.environ.get("REPRISE_SEED")
_WRITTEN = []
_AT_EXIT = None
_MAX_FRAMES, _MAX_TEXT, _MAX_CHAIN, _MAX_ERRORS = 200, 20000, 8, 60
_MAX_ROW = 1000000


def _plain(text, most=1000):
    """Text that any reader of JSON takes: without lone surrogates, and of a bounded length."""
    return str(text)[:most].encode("utf-8", "replace").decode()


def _frames(tb):
    import linecache

    found = []
    while tb is not None and len(found) < 10000:
        code = tb.tb_frame.f_code
        found.append((code.co_filename, tb.tb_lineno, getattr(code, "co_qualname", code.co_name)))
        tb = tb.tb_next
    if len(found) > _MAX_FRAMES:
        found = found[: _MAX_FRAMES // 2] + found[-_MAX_FRAMES // 2 :]
    return [
        {
            "path": _plain(path),
            "line": line,
            "function": _plain(name),
            "code": _plain(linecache.getline(path, line).strip(), 500),
        }
        for path, line, name in found
    ]


def _describe(error, depth=0, told=None):
    told = [] if told is None else told
    told.append(error)
    kind = type(error)
    try:
        message = str(error)
    except Exception as broken:
        message = "<unprintable: %s>" % type(broken).__name__
    notes = getattr(error, "__notes__", None) or []
    row = {
        "exception": _plain(kind.__qualname__),
        "module": _plain(kind.__module__),
        "bases": [_plain(base.__qualname__) for base in kind.__mro__[1:50] if base is not object],
        "message": _plain(message, _MAX_TEXT),
        "notes": [_plain(note, 2000) for note in notes[:5]],
        "frames": _frames(error.__traceback__),
        "chained": [],
    }
    if depth < _MAX_CHAIN:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        for inner in (before, *getattr(error, "exceptions", ())[:_MAX_CHAIN]):
            if isinstance(inner, BaseException) and len(told) < _MAX_ERRORS:
                row["chained"].append(_describe(inner, depth + 1, told))
    return row


def _write(error, where):
    import json

    try:
        row = {
            "pid": os.getpid(),
            "main": os.environ.get("REPRISE_MAIN") == str(os.getpid()),
            "where": where,
            "error": _describe(error),
        }
        if len(json.dumps(row)) > _MAX_ROW:
            row["error"]["chained"] = []
        path = os.path.join(_FOLDER, "trace-%d-%s.json" % (os.getpid(), where))
        with open(path + ".part", "w", encoding="utf-8", errors="replace") as out:
            json.dump(row, out)
        os.replace(path + ".part", path)
        if where == "main":
            _WRITTEN.append(path)
    except Exception:
        return


def _install_hooks():
    import atexit
    import threading

    before, before_thread = sys.excepthook, threading.excepthook

    def on_exception(kind, error, tb):
        if isinstance(error, BaseException):
            _write(error, "main")
        before(kind, error, tb)

    def on_thread_exception(args):
        if isinstance(args.exc_value, BaseException):
            _write(args.exc_value, "thread")
        before_thread(args)

    def at_exit():
        # A library may have put its own hook in the place of ours; Python keeps the exception that
        # ended the program.
        error = getattr(sys, "last_value", None)
        if isinstance(error, BaseException) and not _WRITTEN:
            _write(error, "main")

    global _AT_EXIT
    _AT_EXIT = at_exit
    sys.excepthook = on_exception
    atexit.register(at_exit)
    threading.excepthook = on_thread_exception


def _numpy(module, seed):
    module.random.seed(seed % 2**32)


def _torch(module, seed):
    module.manual_seed(seed)


def _tensorflow(module, seed):
    module.debugging.disable_traceback_filtering()
    module.random.set_seed(seed)


def _keras(module, _seed):
    # Keras hides its own frames; where an error arose is half of what it is.
    module.config.disable_traceback_filtering()


_IMPORTED = {"numpy": _numpy, "torch": _torch, "tensorflow": _tensorflow, "keras": _keras}


class _AfterImport:
    """Seeds a library once it has been imported, and has it show all frames, by wrapping the loader
    that the other finders give.
    """

    def find_spec(self, name, path=None, target=None):
        if name not in _IMPORTED:
            return None
        then = _IMPORTED.pop(name)
        try:
            import importlib.util

            spec = importlib.util.find_spec(name)
        except Exception:
            return None
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                then(module, int(_SEED))
            except Exception:
                return

        try:
            spec.loader.exec_module = exec_module
        except Exception:
            return None
        return spec


def _arm():
    global _FOLDER
    os.environ.setdefault("REPRISE_MAIN", str(os.getpid()))
    if _FOLDER:
        _FOLDER = os.environ["REPRISE_TRACE"] = os.path.abspath(
            _FOLDER
        )  # the program may change directory or start others
        _install_hooks()
    if _SEED is not None:
        import random

        random.seed(int(_SEED))
        sys.meta_path.insert(0, _AfterImport())
    after = os.environ.get("REPRISE_STACKS_AFTER")
    if after:
        import faulthandler

        faulthandler.dump_traceback_later(float(after), exit=False)
    if os.environ.get("REPRISE_WANTED"):
        import _reprise_reached  # noqa: F401  # reached.py, copied under this name


def _chain():
    """Import the environment's own sitecustomize, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        candidate = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(folder or ".") != here and os.path.isfile(candidate):
            import importlib.util

            spec = importlib.util.spec_from_file_location("_own_sitecustomize", candidate)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


try:
    _arm()
except Exception as _error:
    sys.stderr.write("reprise probe not armed: %r\n" % (_error,))
try:
    _chain()
except Exception as _error:
    sys.stderr.write("sitecustomize of the environment failed: %r\n" % (_error,))
