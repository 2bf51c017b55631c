"""Runs first in every Python of a sandboxed run: seeds the generators and writes down how the
program ended.

Copied into the sandbox and put on PYTHONPATH; imports nothing but the standard library and nothing
of ours. It never raises, draws no random numbers, and changes nothing that the program can see
beyond the seeds. `REPRISE_TRACE` names the folder for `trace-<pid>.json`, `REPRISE_SEED` the seed,
`REPRISE_STACKS_AFTER` the seconds after which all stacks are printed (for hangs); with
`REPRISE_WANTED`, what the program reaches is written down too (`reached.py`), with
`REPRISE_TRAINING` how it trains (`training/`); `REPRISE_TRIAL` makes it one training of a repair
(`trial.py`), `REPRISE_CUDA` has CUDA calls answered on the CPU (`cuda_on_cpu.py`). The file `key`
in that folder signs what this process writes, and that it came to its own end.
"""

import os
import sys

_FOLDER = os.environ.get("REPRISE_TRACE")
_SEED = os.environ.get("REPRISE_SEED")
_WRITTEN_PATHS = []
_AT_EXIT = None


def _install_hooks(key):
    import atexit
    import threading

    import _reprise_trace

    before, owner = sys.excepthook, os.getpid()
    before_thread = getattr(threading, "excepthook", None)  # Python 3.8

    def write(error, where):
        try:
            path = _reprise_trace.write(_FOLDER, error, where, key)
        except Exception:
            return
        if path and where == "main":
            _WRITTEN_PATHS.append(path)

    def on_exception(kind, error, tb):
        write(error, "main")
        before(kind, error, tb)

    def on_thread_exception(args):
        write(args.exc_value, "thread")
        before_thread(args)

    def at_exit():
        # A library may have put its own hook in the place of ours; Python keeps the exception that
        # ended the program.
        if not _WRITTEN_PATHS:
            write(getattr(sys, "last_value", None), "main")
        if key and os.getpid() == owner:
            _reprise_trace.put(_FOLDER, "end-%d" % owner, "%d" % owner, key)

    global _AT_EXIT
    _AT_EXIT = at_exit
    sys.excepthook = on_exception
    atexit.register(at_exit)
    if before_thread is not None:
        threading.excepthook = on_thread_exception


def _numpy(module, seed):
    module.random.seed(seed % 2**32)


def _torch(module, seed):
    # A trial has put the run's seed into it already.
    getattr(module.manual_seed, "__wrapped__", module.manual_seed)(seed)


def _tensorflow(module, seed):
    module.debugging.disable_traceback_filtering()
    module.random.set_seed(seed)


def _keras(module, _seed):
    # Keras hides its own frames; where an error arose is half of what it is.
    module.config.disable_traceback_filtering()


_SEEDING = {"numpy": _numpy, "torch": _torch, "tensorflow": _tensorflow, "keras": _keras}
_AFTER_IMPORT = {}


def after_import(name, hook):
    """Have `hook(module)` called once a library has been imported; what it raises is lost."""
    if not _AFTER_IMPORT:
        sys.meta_path.insert(0, _AfterImport())
    _AFTER_IMPORT.setdefault(name, []).append(hook)


class _AfterImport:
    """Wraps the loader that the other finders give for a library that has a hook."""

    def __init__(self):
        self.looking = set()

    def find_spec(self, name, path=None, target=None):
        """Libraries also look without an import to follow: the hooks wait until one does."""
        if name not in _AFTER_IMPORT or name in self.looking:
            return None
        self.looking.add(name)
        try:
            import importlib.util

            spec = importlib.util.find_spec(name)
            spec.loader.exec_module = self._and_then(name, spec.loader.exec_module)
            return spec
        except Exception:  # whatever is wrong with it, the import itself will say
            return None
        finally:
            self.looking.discard(name)

    def _and_then(self, name, run):
        def exec_module(module):
            run(module)
            for hook in _AFTER_IMPORT.pop(name, ()):
                try:
                    hook(module)
                except Exception:
                    continue

        return exec_module


def _seed_after_import(name, seeder):
    after_import(name, lambda module: seeder(module, int(_SEED)))


def _key():
    """What signs the traces of this process, the run's first: gone before the program starts."""
    path = os.path.join(_FOLDER, "key")
    try:
        with open(path, "rb") as source:
            key = source.read()
        os.remove(path)
    except OSError:
        return b""
    return key


def _arm():
    global _FOLDER
    os.environ.setdefault("REPRISE_MAIN", str(os.getpid()))
    if _FOLDER:
        _FOLDER = os.environ["REPRISE_TRACE"] = os.path.abspath(
            _FOLDER
        )  # the program may change directory or start others
        _install_hooks(_key())
    if _SEED is not None:
        import random

        random.seed(int(_SEED))
        for name, seeder in _SEEDING.items():
            _seed_after_import(name, seeder)
    after = os.environ.get("REPRISE_STACKS_AFTER")
    if after:
        import faulthandler

        faulthandler.dump_traceback_later(float(after), exit=False)
    if os.environ.get("REPRISE_WANTED"):
        import _reprise_reached  # noqa: F401  # reached.py, copied under this name
    for part in ("trial", "cuda"):  # trial.py and cuda_on_cpu.py, copied as _reprise_<part>.py
        if os.environ.get("REPRISE_" + part.upper()):
            for name, hook in __import__("_reprise_" + part).HOOKS.items():
                after_import(name, hook)
    if os.environ.get("REPRISE_TRAINING"):
        from _reprise_training import imports  # training/, copied under this name

        imports.arm(after_import)


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
