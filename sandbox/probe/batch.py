"""Runs many candidate programs in one sandboxed run: heavy modules are imported once, then a
child is forked for each.

Copied into the sandbox beside `sitecustomize.py` and `batch_child.py`; imports nothing but the
standard library and the latter. The first argument names a folder to work in, the second one in
which `0.json`, `1.json` and so on will appear: rounds of candidates. The result of each candidate
is printed at once, so that one that ends this process takes no other's result with it.
"""

import base64
import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sys
import time
import zlib

import batch_child

_MAX_OUTPUT = 64 << 20
_MAX_LEFT = 20
_PIECE = 12000
_POLL_S = 0.003
_COLLAPSE, _HUGE = 25, 2 << 20  # MADV_COLLAPSE since Linux 6.1, else refused
_STREAMS = (".stdout", ".stderr")
_OURS = {".trace", ".first", ".covered", "__pycache__"}.union(_STREAMS)


def _prefer_to_kill(child):
    """Let the kernel end a candidate, not this process, when memory runs out."""
    with contextlib.suppress(OSError), open("/proc/%d/oom_score_adj" % child, "w") as out:
        out.write("900")


def _warm(modules):
    for name in modules:
        # a candidate will meet the same error by itself
        with contextlib.suppress(BaseException):
            __import__(name)


def _use_large_pages():
    """Put what each child must be given a page table of into large pages: with 4 KiB pages the
    table of an imported torch takes longer to copy than most candidates to run.
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


def _start(job, folder):
    """Fork a child in a process group of its own that becomes the candidate."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            batch_child.become(job, folder)
        finally:
            os._exit(121)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # whichever of the two comes first
    _prefer_to_kill(pid)
    return pid


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


def _text(folder, name, limit):
    data, cut = _capped(os.path.join(folder, name), limit)
    return data.decode("latin-1"), cut  # every byte a character, which JSON carries whole


def _traces(folder):
    trace = os.path.join(folder, ".trace")
    names = sorted(os.listdir(trace))[:20] if os.path.isdir(trace) else []
    plain = [name for name in names if not os.path.islink(os.path.join(trace, name))]
    trace_names = [name for name in plain if name.startswith("trace-") and name.endswith(".json")]
    return {name: _text(trace, name, 400000)[0] for name in trace_names}


def _new_files(job, folder):
    names_before = {name.split("/")[0] for name in job["files"]}
    try:
        return sorted(set(os.listdir(folder)) - names_before - _OURS)[:_MAX_LEFT]
    except OSError:  # it removed or closed its own directory
        return []


def _report(job, folder, status, seconds, cpu, late, limit):
    row = {"id": job["id"], "seconds": seconds, "cpu": cpu, "timed_out": late}
    row["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    row["exit_code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    for name in _STREAMS:
        row[name[1:]], row[name[1:] + "_truncated"] = _text(folder, name, limit)
    row["traces"], row["left"] = _traces(folder), _new_files(job, folder)
    row["first"] = _text(folder, ".first", 200)[0]
    row["covered"] = _text(folder, ".covered", 1000000)[0] if job["cover"] else ""
    data = zlib.compress(json.dumps(row).encode(), 1)
    _send(job["round"], job["id"], base64.b64encode(data).decode())
    shutil.rmtree(folder, ignore_errors=True)


def _send(number, name, data):
    """Print one message, in lines that are short enough to travel whole: `@number name
    rest-of-lines data`.
    """
    pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)] or [""]
    rows = enumerate(reversed(range(len(pieces))))
    lines = ["@%d %s %d %s" % (number, name, rest, pieces[at]) for at, rest in rows]
    pending = ("\n" + "\n".join(lines) + "\n").encode()
    while pending:
        pending = pending[os.write(1, pending) :]


def _flooded(folder):
    try:
        return max(os.path.getsize(os.path.join(folder, name)) for name in _STREAMS) > _MAX_OUTPUT
    except OSError:
        return False


def _kill_group(pid):
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _unpack(folder, files):
    os.makedirs(os.path.join(folder, ".trace"), exist_ok=True)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace", newline="") as out:
            out.write(text)


def _serve(base, plan):
    waiting, running = list(reversed(plan["jobs"])), {}
    while waiting or running:
        while waiting and len(running) < plan["degree"]:
            job = waiting.pop()
            folder = os.path.join(base, "%d-%s" % (job["round"], job["id"]))
            _unpack(folder, job["files"])
            running[_start(job, folder)] = (job, folder, time.monotonic())
        time.sleep(0.002)
        for pid in list(running):
            if _has_ended(pid, *running[pid], plan):
                del running[pid]


def _has_ended(pid, job, folder, began, plan):
    """Whether a candidate has ended, by itself or at a limit; if so, report it."""
    elapsed = time.monotonic() - began
    late = elapsed > plan["limit_s"] or _cpu_s(pid) > plan["limit_cpu_s"] or _flooded(folder)
    if late:
        _kill_group(pid)
    pid_ended, status, usage = os.wait4(pid, 0 if late else os.WNOHANG)
    if pid_ended:
        _kill_group(pid)  # what it left running goes with it
        cpu = usage.ru_utime + usage.ru_stime
        _report(job, folder, status, elapsed, cpu, late, plan["output_bytes"])
    return bool(pid_ended)


def _cpu_s(pid):
    """Seconds of processor time that a process has used, by its clock (clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def _next(inbox, number):
    path = os.path.join(inbox, "%d.json" % number)
    while not os.path.exists(path):
        time.sleep(_POLL_S)
    with open(path) as source:
        return json.load(source)


def _prepare(plan, number):
    """Import and seed for all candidates of a round; the seed, None where nothing is shared."""
    fork = plan["mode"] == "fork"
    seed, module_count = plan["jobs"][0]["seed"] if fork else None, len(sys.modules)
    if fork:
        _warm(plan["modules"])
        # once for most of the children, in each of whom it would copy five hundred pages
        batch_child.seed_libraries(seed)
        gc.collect()
        gc.freeze()  # a child that collects does not touch, and so copy, what was there before it
        if len(sys.modules) != module_count or number == 0:
            _use_large_pages()
    for job in plan["jobs"]:
        job.update(round=number, fork=fork, seeded=seed, watch=plan["watch"])


def main(base, inbox):
    """Serve rounds of jobs until somebody ends this process."""
    base = os.path.abspath(base)
    os.makedirs(base, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    number = 0
    while True:
        plan = _next(inbox, number)
        _prepare(plan, number)
        _serve(base, plan)
        _send(number, "end", "")
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:3])
