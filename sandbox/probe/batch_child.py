"""What a child of the batch server does to become a candidate program: streams, seeds, tracing and
its end.

Copied into the sandbox beside `batch.py`; imports nothing but the standard library and nothing of
ours.
"""

import atexit
import contextlib
import json
import os
import random
import sys
import threading
import types

_MAX_TENSORS, _MAX_NOTES = 500, 20000
_MAX_ITEMS, _MAX_TEXT = 12, 100
_PLAIN = (bool, int, float, str, type(None))


def become(job, folder):
    """Run the program of a job as this process; does not return."""
    _redirect(folder)
    os.chdir(folder)
    os.environ.update(job.get("env", {}))
    if not job["fork"]:
        _replace_process(job, folder)
    # The finalizers of the libraries that the server imported take longer than most candidates:
    # torch's copy 30 MB of pages. The candidate registers its own after this; the probe's stays.
    atexit._clear()
    if getattr(_probe(), "_AT_EXIT", None) is not None:
        atexit.register(_probe()._AT_EXIT)
    _rearm(folder, job["seed"])
    random.seed(job["seed"])  # Python gives each child one of its own
    if job["seed"] != job["seeded"]:
        seed_libraries(job["seed"])
    before = set(sys.modules) if job["cover"] else ()  # copying all names costs a thousand pages
    lines, tensors = set(), {}
    watch = _watch(job["watch"]) if job["watch"] else None
    with watch or contextlib.nullcontext():
        status = _execute(
            job["entry"], folder, _tracer(folder, lines, tensors, job["cover"] == "lines")
        )
    if watch is not None:
        _note(folder, ".first", watch.first)
    if job["cover"]:
        sys.settrace(None)
        rows = sorted((os.path.relpath(path, folder), line) for path, line in lines)
        modules = [name for name in sys.modules if name not in before]
        coverage = {"lines": rows, "modules": modules, "tensors": list(tensors.values())}
        _note(folder, ".covered", json.dumps(coverage))
    _finish(status)


def _probe():
    return sys.modules.get("sitecustomize")


def _redirect(folder):
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
    paths = [os.path.join(folder, name) for name in (".stdout", ".stderr")]
    files = [os.open(path, flags, 0o600) for path in paths]
    for target, source in enumerate([os.open(os.devnull, os.O_RDONLY), *files]):
        os.dup2(source, target)


def _replace_process(job, folder):
    """Become a Python of its own, for libraries that cannot be forked."""
    seed = job["seed"]
    env = dict(os.environ, REPRISE_TRACE=os.path.join(folder, ".trace"), REPRISE_SEED=str(seed))
    env["PYTHONHASHSEED"] = str(seed % 2**32)
    env.pop("REPRISE_MAIN", None)
    os.execve(sys.executable, [sys.executable, job["entry"]], env)


def seed_libraries(seed):
    """Leave the generators of libraries as the probe does in a program that has just imported
    them.
    """
    probe = _probe()
    for name in ("numpy", "torch", "tensorflow"):
        seeder = getattr(probe, "_" + name, None)
        if name in sys.modules and seeder is not None:
            try:
                seeder(sys.modules[name], seed)
            except Exception:
                continue
    if getattr(probe, "_SEED", None) is not None:
        probe._SEED = str(seed)


def _rearm(folder, seed):
    """Let the probe that the server started with watch this child from here on."""
    trace = os.path.join(folder, ".trace")
    os.environ["REPRISE_MAIN"] = str(os.getpid())
    os.environ["REPRISE_TRACE"] = trace
    os.environ["REPRISE_SEED"] = str(seed)
    probe = _probe()
    if probe is not None and hasattr(probe, "_WRITTEN_PATHS"):
        probe._FOLDER = trace
        del probe._WRITTEN_PATHS[:]


def _note_values(folder, frame, values, budget):
    """Note what the variables hold last: plain values as text, of arrays the shape and type."""
    numpy = sys.modules.get("numpy")
    array = getattr(numpy, "ndarray", None)
    for name, value in list(frame.f_locals.items()):
        if budget[0] <= 0 or name.startswith("_") or len(values) > _MAX_TENSORS:
            return
        row = {"text": _text(value)}
        if array is not None and type(value) is array and value.dtype.kind in "fiub":
            row.update(shape=list(value.shape), dtype="numpy." + value.dtype.name)
        if row["text"] or "shape" in row:
            budget[0] -= 1
            path = os.path.relpath(frame.f_code.co_filename, folder)
            values[path, name] = dict({"shape": [], "dtype": ""}, path=path, name=name, **row)


def _text(value, depth=0):
    """A short plain value as its literal, "" for any other."""
    if type(value) in _PLAIN:
        return repr(value) if type(value) is not str or len(value) <= _MAX_TEXT else ""
    if type(value) not in (list, tuple, dict) or len(value) > _MAX_ITEMS or depth > 2:
        return ""
    items = [*value, *value.values()] if type(value) is dict else value
    text = repr(value) if all(_text(item, depth + 1) for item in items) else ""
    return text if len(text) <= _MAX_TEXT else ""


def _note_tensors(folder, frame, tensors):
    """Note the shapes and types of the variables that hold plain data, in whose computation no
    parameter took part.
    """
    torch = sys.modules.get("torch")
    ready = torch is not None and hasattr(torch, "is_grad_enabled")
    if not ready or len(tensors) > _MAX_TENSORS or not torch.is_grad_enabled():
        return
    for name, value in list(frame.f_locals.items()):
        if type(value) is not torch.Tensor or value.requires_grad:
            continue
        path = os.path.relpath(frame.f_code.co_filename, folder)
        kind = str(value.dtype).replace("torch.", "")
        row = {"path": path, "name": name, "shape": list(value.shape), "dtype": kind}
        tensors.setdefault((path, name), row)


def _tracer(folder, lines, tensors, cover):
    """A trace function that notes which lines of the candidate's own files ran."""
    budget = [_MAX_NOTES]

    def local(frame, event, _arg):
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        _note_tensors(folder, frame, tensors)
        _note_values(folder, frame, tensors, budget)
        return local

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(folder):
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return local(frame, event, arg)

    return trace if cover else None


def _watch(kind):
    """A mode of torch that notes the first operation that makes a non-finite value from finite
    ones. None where there is no torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "isnan"):
        return None
    from torch.utils._python_dispatch import TorchDispatchMode

    test = torch.isnan if kind == "nan" else torch.isinf

    def odd(value):
        if not isinstance(value, torch.Tensor):
            return isinstance(value, (list, tuple)) and any(odd(item) for item in value)
        if not value.is_floating_point() or value.numel() == 0:
            return False
        return bool(test(value.detach()).any())

    class FirstNonFinite(TorchDispatchMode):
        first = ""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            # "empty" only hands out memory, with whatever is in it
            if not self.first and "empty" not in str(func):
                with contextlib.suppress(Exception):
                    self.first = str(func) if odd(out) and not odd(args) else ""
            return out

    return FirstNonFinite()


def _note(folder, name, text):
    with open(os.path.join(folder, name), "w") as out:
        out.write(text)


def _execute(entry, folder, trace):
    """Run a file as the main program; returns the exit status as Python would."""
    main = types.ModuleType("__main__")
    path = os.path.join(folder, entry)
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv, sys.path[0] = [entry], os.path.dirname(path)
    sys.settrace(trace)
    try:
        with open(path, "rb") as source:
            code = compile(source.read(), path, "exec", dont_inherit=True)
        exec(code, main.__dict__)
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write("%s\n" % (end.code,))
        return 1
    except BaseException as error:
        sys.settrace(None)
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code is _execute.__code__:
            tb = tb.tb_next
        error = error.with_traceback(tb)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, tb
        sys.excepthook(type(error), error, tb)
        return 1


def _finish(status):
    """End as Python does, without going back into the server's own frames."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        status = status or 120
    os._exit(status & 0xFF)
