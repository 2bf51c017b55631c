"""Trains programs in forks of one process that has imported the framework once.

Run by the interpreter that has the frameworks: `python serve.py torch`, and `python serve.py torch
FOLDER` to have programs watched by the training probe in that folder. Reads one JSON object
(`program`, `seed`, `seconds`, `trace`: a folder for what the probe writes, or "") a line and
answers each with `code`, `output` (its end) and `seconds` of CPU. Stdlib-only at import.
"""

import contextlib
import importlib
import json
import os
import random
import resource
import runpy
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import IO

_MODULES = {
    "torch": ("numpy", "torch", "torch._dynamo", "sklearn.datasets", "sklearn.preprocessing"),
    "keras": ("numpy", "tensorflow", "keras", "sklearn.datasets", "sklearn.preprocessing"),
}


_PROBE = "_reprise_training"


def main(framework: str, probe: str) -> None:
    """Answer until standard input ends."""
    if probe:
        sys.path.append(probe)
        importlib.import_module(_PROBE)  # before the frameworks, which it waits for
    for name in (*_MODULES[framework], "sklearn.model_selection", "pandas"):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for line in sys.stdin:
        task = json.loads(line)
        with tempfile.TemporaryFile("w+") as out:
            print(json.dumps(_trained(task, framework, out.fileno()) | _end(out)), flush=True)


def _trained(task: dict[str, int | str], framework: str, out: int) -> dict[str, float]:
    child = os.fork()
    if child == 0:
        _train(task, framework, out)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "seconds": used.ru_utime + used.ru_stime}


def _train(task: dict[str, int | str], framework: str, out: int) -> None:
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(out, 2)
        limit = int(task["seconds"]) + int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        _seed(int(task["seed"]), framework)
        if task["trace"]:
            _watch(str(task["trace"]))
        sys.argv = [str(task["program"])]
        runpy.run_path(str(task["program"]), run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        if task["trace"]:
            importlib.import_module(f"{_PROBE}.imports")._end()
        sys.stdout.flush()
        os._exit(code)


def _watch(folder: str) -> None:
    """Have the probe write down this process; it keeps silent in a fork."""
    os.environ["REPRISE_TRACE"] = folder
    importlib.import_module(f"{_PROBE}.core").STATE.__init__()
    importlib.import_module(f"{_PROBE}.writer").WRITER.__init__()


def _seed(seed: int, framework: str) -> None:
    random.seed(seed)
    importlib.import_module("numpy").random.seed(seed)
    if framework == "torch":
        importlib.import_module("torch").manual_seed(seed)
    else:
        importlib.import_module("keras").utils.set_random_seed(seed)


def _end(out: IO[str]) -> dict[str, str]:
    out.seek(0)
    return {"output": out.read()[-4000:]}


if __name__ == "__main__":
    main(Path(sys.argv[1]).name, sys.argv[2] if sys.argv[2:] else "")
