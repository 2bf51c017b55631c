"""Byte code for an environment, made from nothing but its sources: what wheels bring of it goes,
and what was compiled here before is shared by the hash of its source. Runs outside the sandbox, in
a bare Python from 3.6 that looks at no site-packages.

The compiler itself can be led to take gigabytes and hours, so it works in children with limits. A
file that exceeds them stays without byte code, and a run compiles it under its own limits.
"""

import ctypes
import hashlib
import os
import py_compile
import resource
import shutil
import signal
import sys
import time
from importlib.util import cache_from_source

MOST_SOURCE = 4 << 20
MOST_MEMORY = 1536 << 20
MOST_CODE = 64 << 20
FILE_S, ALL_S = 10, 600


def main(root, site, store):
    """Remove all byte code below `root`, and compile what is below `site`."""
    clear(root)
    names = [
        os.path.join(folder, name)
        for folder, _, files in os.walk(site)
        for name in files
        if name.endswith(".py")
    ]
    end = time.time() + ALL_S
    count = min(os.cpu_count() or 1, 8, 1 + len(names) // 50)
    workers = [forked(supervise, names[k::count], store, end) for k in range(count)]
    for pid in workers:
        os.waitpid(pid, 0)


def clear(root):
    for folder, folders, files in os.walk(root):
        for name in [each for each in folders if each == "__pycache__"]:
            folders.remove(name)
            path = os.path.join(folder, name)
            os.unlink(path) if os.path.islink(path) else shutil.rmtree(path)
        for name in files:
            if name == "__pycache__" or name.endswith(".pyc"):
                os.unlink(os.path.join(folder, name))


def forked(work, *given):
    pid = os.fork()
    if pid:
        return pid
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with its parent
    try:
        work(*given)
    finally:
        os._exit(0)


def supervise(names, store, end):
    """Have the files compiled by one child after another: each goes on after the file at which
    the one before it died.
    """
    while names:
        reader, writer = os.pipe()
        pid = forked(work, names, store, end, writer)
        os.close(writer)
        done = 0
        while True:
            told = os.read(reader, 65536)
            done += len(told)
            if not told:
                break
        os.close(reader)
        os.waitpid(pid, 0)
        names = names[done + 1 :]


def work(names, store, end, writer):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_CODE, MOST_CODE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in names:
        signal.alarm(FILE_S)  # ends this process: Python's own handlers wait for the compiler
        try:
            if time.time() < end and os.path.getsize(name) <= MOST_SOURCE:
                compiled(name, store)
        except (Exception, MemoryError):
            pass
        os.write(writer, b".")


def compiled(name, store):
    """Give a source its byte code from the store, where it is put first when it is new. Its time
    counts too: Python compares it before it takes the byte code.
    """
    with open(name, "rb") as stream:
        data = stream.read()
    digest = hashlib.sha256(b"%d\0" % int(os.stat(name).st_mtime) + data).hexdigest()
    kept = os.path.join(store, digest[:2], digest)
    if not os.path.exists(kept):
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        part = "%s.%d" % (kept, os.getpid())
        py_compile.compile(name, part, doraise=True)
        os.rename(part, kept)
    target = cache_from_source(name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(kept, target)
    except OSError:  # a file system without links, or one that has no more for this file
        shutil.copyfile(kept, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
