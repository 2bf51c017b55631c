"""Byte code for an environment, made from nothing but its sources: what wheels bring of it goes,
and what was compiled here before is shared by the hash of its source. Runs outside the sandbox, in
a bare Python from 3.6 that looks at no site-packages.

The compiler itself can be led to take gigabytes and hours, so it works in children with limits. A
file that exceeds them stays without byte code, and a run compiles it under its own limits.
"""

import ctypes
import hashlib
import marshal
import os
import resource
import shutil
import signal
import struct
import sys
import time
from importlib.util import MAGIC_NUMBER, cache_from_source

MOST_SOURCE = 4 << 20
MOST_MEMORY = 1536 << 20
MOST_CODE = 64 << 20
FILE_S, ALL_S = 10, 600
SKIPPED = "tests"  # half of NumPy's source, two thirds of pandas', hardly ever imported
FLAGS = b"\0\0\0\0" if sys.version_info >= (3, 7) else b""


def main(root, site, store):
    """Remove all byte code below `root`, and compile what is below `site` except tests."""
    clear(root)
    names = []
    for where, folders, files in os.walk(site):
        folders[:] = [name for name in folders if name != SKIPPED]
        names += [os.path.join(where, name) for name in files if name.endswith(".py")]
    end = time.time() + ALL_S
    count = min(os.cpu_count() or 1, 8, 1 + len(names) // 50)
    workers = [fork(supervise, names[k::count], store, end) for k in range(count)]
    for pid in workers:
        os.waitpid(pid, 0)


def clear(root):
    for where, folders, files in os.walk(root):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            path = os.path.join(where, "__pycache__")
            os.unlink(path) if os.path.islink(path) else shutil.rmtree(path)
        for name in files:
            if name == "__pycache__" or name.endswith(".pyc"):
                os.unlink(os.path.join(where, name))


def fork(work, *args):
    pid = os.fork()
    if pid:
        return pid
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with its parent
    try:
        work(*args)
    finally:
        os._exit(0)


def supervise(names, store, end):
    """Have the files compiled by one child after another: each goes on after the file at which
    the one before it died.
    """
    while names:
        reader, writer = os.pipe()
        pid = fork(work, names, store, end, writer)
        os.close(writer)
        count = 0
        while True:
            data = os.read(reader, 65536)
            count += len(data)
            if not data:
                break
        os.close(reader)
        os.waitpid(pid, 0)
        names = names[count + 1 :]


def work(names, store, end, writer):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_CODE, MOST_CODE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folders_made = set()
    for name in names:
        signal.alarm(FILE_S)  # ends this process: Python's own handlers wait for the compiler
        try:
            if time.time() < end and os.path.getsize(name) <= MOST_SOURCE:
                compile_file(name, store, folders_made)
        except (Exception, MemoryError):
            pass
        os.write(writer, b".")


def compile_file(name, store, folders_made):
    """Give a source its byte code from the store, where it is put first when it is new. Its time
    counts too: Python compares it before it takes the byte code.
    """
    with open(name, "rb") as stream:
        data = stream.read()
        stamp = struct.pack("<II", int(os.fstat(stream.fileno()).st_mtime) & 0xFFFFFFFF, len(data))
    digest = hashlib.sha256(stamp + data).hexdigest()
    cached_path = os.path.join(store, digest[:2], digest)
    if not os.path.exists(cached_path):
        code = marshal.dumps(compile(data, name, "exec", dont_inherit=True))
        folder(os.path.dirname(cached_path), folders_made)
        part = "%s.%d" % (cached_path, os.getpid())
        with open(part, "wb") as stream:
            stream.write(MAGIC_NUMBER + FLAGS + stamp + code)
        os.rename(part, cached_path)
    target = cache_from_source(name)
    folder(os.path.dirname(target), folders_made)
    try:
        os.link(cached_path, target)
    except OSError:  # a file system without links, or one that has no more for this file
        shutil.copyfile(cached_path, target)


def folder(path, folders_made):
    if path not in folders_made:
        os.makedirs(path, exist_ok=True)
        folders_made.add(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
