"""Runs many candidate programs in one sandboxed run: heavy modules are imported once, then a child is forked for each.

Copied into the sandbox beside `sitecustomize.py`; imports nothing but the standard library and nothing of ours. The first
argument names a folder to work in, the second one in which `0.json`, `1.json` and so on will appear: rounds of candidates. What
became of each candidate is printed at once, so that one that ends this process takes no other's result with it.
"""

import base64
import contextlib
import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import zlib

_MOST = 64 << 20
_PIECE = 12000
_LOOK_S = 0.003
_COLLAPSE, _HUGE = 25, 2 << 20


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


def _in_large_pages():
    """What a child has to be given a table of: with 4 KiB pages the table of an imported torch takes longer to copy than most
    candidates to run. Linux 6.1 (madvise(2), MADV_COLLAPSE); an older one says no, and nothing is lost.
    """
    try:
        import ctypes

        madvise = ctypes.CDLL(None).madvise
        with open("/proc/self/maps") as rows:
            for row in rows:
                span, kind, _, _, inode, *name = row.split()
                if kind == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                    first, last = (int(place, 16) for place in span.split("-"))
                    first, last = -(-first // _HUGE) * _HUGE, last // _HUGE * _HUGE
                    if last > first:
                        madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _COLLAPSE)
    except Exception:
        return


def _reseed(seed):
    """The generators of libraries as the probe leaves them in a program that has just imported them."""
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


def _forget_exits():
    """What libraries do at the end of the process that imported them takes longer than most candidates: torch's finalizers copy
    30 MB of pages. The candidate's own come after this, and the probe's stays.
    """
    import atexit

    atexit._clear()
    last = getattr(sys.modules.get("sitecustomize"), "_AT_EXIT", None)
    if last is not None:
        atexit.register(last)


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


def _watching(kind):
    """A mode of torch that notes the first operation with a value that is not finite, made of values that were: `.first`.
    None where there is no torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "isnan"):
        return None
    from torch.utils._python_dispatch import TorchDispatchMode

    test = torch.isnan if kind == "nan" else torch.isinf

    def odd(value):
        if isinstance(value, torch.Tensor):
            return value.is_floating_point() and value.numel() > 0 and bool(test(value.detach()).any())
        return isinstance(value, (list, tuple)) and any(odd(each) for each in value)

    class Watch(TorchDispatchMode):
        first = ""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if not self.first and "empty" not in str(func):  # which only hands out memory, with whatever is in it
                try:
                    if odd(out) and not odd(args):
                        self.first = str(func)
                except Exception:
                    return out
            return out

    return Watch()


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
    _forget_exits()
    _rearm(folder, job["seed"])
    random.seed(job["seed"])  # Python gives each child one of its own
    if job["seed"] != job["seeded"]:
        _reseed(job["seed"])
    covered = (set(), {}) if job.get("cover") else None
    before = set(sys.modules) if covered is not None else None  # a look at all names copies a thousand pages
    watch = _watching(job["watch"]) if job.get("watch") else None
    with watch or contextlib.nullcontext():
        status = _execute(job["entry"], folder, covered)
    if watch is not None:
        with open(os.path.join(folder, ".first"), "w") as note:
            note.write(watch.first)
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


def _report(job, folder, status, seconds, cpu, late, limit):
    row = {"id": job["id"], "seconds": seconds, "cpu": cpu, "timed_out": late}
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
    row["first"] = _text(_capped(os.path.join(folder, ".first"), 200)[0])
    row["covered"] = _text(_capped(os.path.join(folder, ".covered"), 1000000)[0]) if job.get("cover") else ""
    _tell(job["round"], job["id"], base64.b64encode(zlib.compress(json.dumps(row).encode(), 1)).decode())
    shutil.rmtree(folder, ignore_errors=True)


def _tell(number, name, data):
    """One message, in lines that are short enough to travel whole: `@number name rest-of-lines data`."""
    pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)] or [""]
    lines = ["@%d %s %d %s" % (number, name, len(pieces) - 1 - at, piece) for at, piece in enumerate(pieces)]
    left = ("\n" + "\n".join(lines) + "\n").encode()
    while left:
        left = left[os.write(1, left) :]


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


def _unpack(folder, files):
    os.makedirs(os.path.join(folder, ".trace"), exist_ok=True)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace", newline="") as out:
            out.write(text)


def _serve(base, plan):
    waiting, running = list(reversed(plan["jobs"])), {}
    start = _start_fork if plan["mode"] == "fork" else _start_fresh
    while waiting or running:
        while waiting and len(running) < plan["degree"]:
            job = waiting.pop()
            folder = os.path.join(base, job["folder"])
            _unpack(folder, job["files"])
            began = time.monotonic()
            pid = start(job, folder)
            _grace(pid)
            running[pid] = (job, folder, began)
        time.sleep(0.002)
        for pid, (job, folder, began) in list(running.items()):
            spent = time.monotonic() - began
            late = spent > plan["limit_s"] or _worked(pid) > plan["limit_cpu_s"] or _flooded(folder)
            if late:
                _kill(pid)
            ended, status, usage = os.wait4(pid, 0 if late else os.WNOHANG)
            if ended:
                _kill_group(pid)
                del running[pid]
                cpu = usage.ru_utime + usage.ru_stime
                _report(job, folder, status, spent, cpu, late, plan["output_bytes"])


def _worked(pid):
    """Seconds of processor time that a process has used, by its clock (clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def _kill_group(pid):
    """What a candidate left running goes with it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        return


def _next(inbox, number):
    path = os.path.join(inbox, "%d.json" % number)
    while not os.path.exists(path):
        time.sleep(_LOOK_S)
    with open(path) as source:
        return json.load(source)


def main(base, inbox):
    """Serve rounds of jobs until somebody ends this process."""
    base = os.path.abspath(base)
    os.makedirs(base, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(each) for each in paths if each)
    number, known = 0, 0
    while True:
        plan = _next(inbox, number)
        seeded = None
        if plan["mode"] == "fork":
            _warm(plan["modules"])
            seeded = plan["jobs"][0]["seed"]
            _reseed(seeded)  # once for most of the children, in whom it would copy five hundred pages
            gc.collect()
            gc.freeze()  # a child that collects does not touch, and so copy, what was there before it
            if len(sys.modules) != known:
                _in_large_pages()
                known = len(sys.modules)
        for job in plan["jobs"]:
            job["round"], job["folder"] = number, "%d-%s" % (number, job["id"])
            job["watch"], job["seeded"] = plan.get("watch"), seeded
        _serve(base, plan)
        _tell(number, "end", "")
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:3])
