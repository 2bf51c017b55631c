"""Writes down an exception, or that a program came to its own end, for the host to read.

Copied into the sandbox beside `sitecustomize.py`; imports nothing but the standard library and
nothing of ours. With a key, the name of a file ends with a signature of its content.
"""

import os

_MAX_FRAMES, _MAX_TEXT, _MAX_CHAIN, _MAX_ERRORS = 200, 20000, 8, 60
_MAX_ROW = 1000000


def _plain(text, most=1000):
    """Text that any reader of JSON takes: without lone surrogates, and of a bounded length."""
    return str(text)[:most].encode("utf-8", "replace").decode()


def _frames(tb):
    import linecache

    frames = []
    while tb is not None and len(frames) < 10000:
        code = tb.tb_frame.f_code
        frames.append((code.co_filename, tb.tb_lineno, getattr(code, "co_qualname", code.co_name)))
        tb = tb.tb_next
    if len(frames) > _MAX_FRAMES:
        frames = frames[: _MAX_FRAMES // 2] + frames[-_MAX_FRAMES // 2 :]
    return [
        {
            "path": _plain(path),
            "line": line,
            "function": _plain(name),
            "code": _plain(linecache.getline(path, line).strip(), 500),
        }
        for path, line, name in frames
    ]


def describe(error, depth=0, visited=None):
    visited = [] if visited is None else visited
    visited.append(error)
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
            if isinstance(inner, BaseException) and len(visited) < _MAX_ERRORS:
                row["chained"].append(describe(inner, depth + 1, visited))
    return row


def write(folder, error, where, key):
    """Write an exception down; the path, None when that fails."""
    if not isinstance(error, BaseException):
        return None
    import json

    pid = os.getpid()
    row = {
        "pid": pid,
        "main": os.environ.get("REPRISE_MAIN") == str(pid),
        "where": where,
        "error": describe(error),
    }
    if len(json.dumps(row)) > _MAX_ROW:
        row["error"]["chained"] = []
    return put(folder, "trace-%d-%s" % (pid, where), json.dumps(row), key)


def put(folder, name, text, key):
    """Write a file whole or not at all."""
    data = text.encode("utf-8", "replace")
    path = os.path.join(folder, name + _signature(data, key) + ".json")
    try:
        with open(path + ".part", "wb") as out:
            out.write(data)
        os.replace(path + ".part", path)
    except OSError:
        return None
    return path


def _signature(data, key):
    if not key:
        return ""
    try:
        from _blake2 import blake2b  # hashlib would cost each run its import
    except ImportError:
        from hashlib import blake2b
    return "-" + blake2b(data, key=key, digest_size=16).hexdigest()
