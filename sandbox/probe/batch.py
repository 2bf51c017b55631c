"""Runs many candidate programs in one sandboxed run: heavy modules are imported once, then a child is forked for each.

Copied into the sandbox beside `sitecustomize.py`; imports nothing but the standard library and nothing of ours. The first
argument names a folder with `jobs.json`; each candidate lies in a folder of its own below it. For each that ended, the folder
`out` gets one JSON file at once, so that a candidate that ends this process takes no other's result with it.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

_MOST = 64 << 20


def _grace(child):
    """The kernel shall end a candidate, not this process, when memory runs out."""
    try:
        with open("/proc/%d/oom_score_adj" % child, "w") as out:
            out.write("900")
    except OSError:
        return


def _warm(modules):
    for name in modules:
        try:
            __import__(name)
        except BaseException:  # a candidate will meet the same error by itself
            continue


def _reseed(seed):
    """The generators as the probe leaves them in a program that has just imported its libraries."""
    random.seed(seed)
    probe = sys.modules.get("sitecustomize")
    for name in ("numpy", "torch", "tensorflow"):
        seeder = getattr(probe, "_seed_" + name, None)
        if name in sys.modules and seeder is not None:
            try:
                seeder(sys.modules[name], seed)
            except Exception:
                continue
    if getattr(probe, "_SEED", None) is not None:
        probe._SEED = str(seed)


def _rearm(folder, seed):
    """What the probe has set for this process holds for the child from here on."""
    trace = os.path.join(folder, ".trace")
    os.environ["REPRISE_MAIN"] = str(os.getpid())
    os.environ["REPRISE_TRACE"] = trace
    os.environ["REPRISE_SEED"] = str(seed)
    probe = sys.modules.get("sitecustomize")
    if probe is not None and hasattr(probe, "_WRITTEN"):
        probe._FOLDER = trace
        del probe._WRITTEN[:]


def _note_tensors(folder, frame, tensors):
    """The shapes and types of the variables that hold plain data; what a parameter had a part in is left alone."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "is_grad_enabled") or len(tensors) > 500 or not torch.is_grad_enabled():
        return
    for name, value in list(frame.f_locals.items()):
        if type(value) is not torch.Tensor or value.requires_grad:
            continue
        key = (os.path.relpath(frame.f_code.co_filename, folder), name)
        if key not in tensors:
            kind = str(value.dtype).replace("torch.", "")
            tensors[key] = {"path": key[0], "name": name, "shape": list(value.shape), "dtype": kind}


def _lines(folder, found, tensors):
    """A trace function that notes which lines of the candidate's own files ran."""

    def local(frame, event, _arg):
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        _note_tensors(folder, frame, tensors)
        return local

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(folder):
            return None
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return local(frame, event, arg)

    return trace


def _execute(entry, folder, covered):
    """Run a file as the main program; returns the exit status as Python would."""
    import types

    main = types.ModuleType("__main__")
    path = os.path.join(folder, entry)
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv = [entry]
    sys.path[0] = os.path.dirname(path)
    if covered is not None:
        sys.settrace(_lines(folder, *covered))
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
    import atexit
    import threading

    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        status = status or 120
    os._exit(status & 0xFF)


def _streams(folder):
    names = [os.path.join(folder, name) for name in (".stdout", ".stderr")]
    return names, [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600) for name in names]


def _child(job, folder):
    """In the forked child: become the candidate."""
    os.setpgid(0, 0)
    _, (out, err) = _streams(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, out), (2, err)):
        os.dup2(source, target)
    os.chdir(folder)
    _rearm(folder, job["seed"])
    _reseed(job["seed"])
    covered, before = (set(), {}) if job.get("cover") else None, set(sys.modules)
    status = _execute(job["entry"], folder, covered)
    if covered is not None:
        sys.settrace(None)
        rows = sorted((os.path.relpath(path, folder), line) for path, line in covered[0])
        modules = [name for name in sys.modules if name not in before]
        with open(os.path.join(folder, ".covered"), "w") as note:
            json.dump({"lines": rows, "modules": modules, "tensors": list(covered[1].values())}, note)
    _finish(status)


def _start_fork(job, folder):
    pid = os.fork()
    if pid:
        return pid
    try:
        _child(job, folder)
    finally:
        os._exit(121)


def _start_fresh(job, folder):
    """A Python of its own, for libraries that cannot be forked."""
    env = dict(os.environ, REPRISE_TRACE=os.path.join(folder, ".trace"), REPRISE_SEED=str(job["seed"]))
    env["PYTHONHASHSEED"] = str(job["seed"] % 2**32)
    env.pop("REPRISE_MAIN", None)
    _, (out, err) = _streams(folder)
    argv = [sys.executable, job["entry"]]
    try:
        child = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
    finally:
        os.close(out)
        os.close(err)
    child.returncode = 0  # reaped here, by its id
    return child.pid


def _capped(path, limit):
    """The beginning and the end of a file, and whether something between was left out."""
    try:
        length = os.path.getsize(path)
        with open(path, "rb") as source:
            if length <= limit:
                return source.read(), False
            head = source.read(limit // 2)
            source.seek(-(limit // 2), os.SEEK_END)
            return head + source.read(), True
    except OSError:
        return b"", False


def _text(data):
    return data.decode("latin-1")  # every byte a character, which JSON carries whole


def _report(base, job, folder, status, seconds, late, limit):
    row = {"id": job["id"], "seconds": seconds, "timed_out": late}
    row["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    row["exit_code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    for name in ("stdout", "stderr"):
        data, cut = _capped(os.path.join(folder, "." + name), limit)
        row[name], row[name + "_truncated"] = _text(data), cut
    row["traces"] = {}
    trace = os.path.join(folder, ".trace")
    for name in sorted(os.listdir(trace))[:20] if os.path.isdir(trace) else []:
        if name.startswith("trace-") and name.endswith(".json") and not os.path.islink(os.path.join(trace, name)):
            row["traces"][name] = _text(_capped(os.path.join(trace, name), 400000)[0])
    row["covered"] = _text(_capped(os.path.join(folder, ".covered"), 1000000)[0]) if job.get("cover") else ""
    path = os.path.join(base, "out", "%s.json" % job["id"])
    with open(path + ".part", "w") as out:
        json.dump(row, out)
    os.replace(path + ".part", path)
    shutil.rmtree(folder, ignore_errors=True)


def _flooded(folder):
    try:
        return max(os.path.getsize(os.path.join(folder, name)) for name in (".stdout", ".stderr")) > _MOST
    except OSError:
        return False


def _kill(pid):
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except OSError:
            continue


def _serve(base, plan):
    waiting, running = list(reversed(plan["jobs"])), {}
    start = _start_fork if plan["mode"] == "fork" else _start_fresh
    while waiting or running:
        while waiting and len(running) < plan["degree"]:
            job = waiting.pop()
            folder = os.path.join(base, job["folder"])
            os.makedirs(os.path.join(folder, ".trace"), exist_ok=True)
            began = time.monotonic()
            pid = start(job, folder)
            _grace(pid)
            running[pid] = (job, folder, began)
        time.sleep(0.002)
        for pid, (job, folder, began) in list(running.items()):
            spent = time.monotonic() - began
            late = spent > plan["limit_s"] or _flooded(folder)
            if late:
                _kill(pid)
            ended, status, _ = os.wait4(pid, 0 if late else os.WNOHANG)
            if ended:
                _kill_group(pid)
                del running[pid]
                _report(base, job, folder, status, spent, late, plan["output_bytes"])


def _kill_group(pid):
    """What a candidate left running goes with it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        return


def main(base):
    """Serve the jobs of a folder."""
    base = os.path.abspath(base)
    with open(os.path.join(base, "jobs.json")) as source:
        plan = json.load(source)
    os.makedirs(os.path.join(base, "out"), exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(each) for each in paths if each)
    if plan["mode"] == "fork":
        _warm(plan["modules"])
    _serve(base, plan)


if __name__ == "__main__":
    main(sys.argv[1])
