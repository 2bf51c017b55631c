"""Runs the programs of programs.txt and writes down how each of them fails.

    PROBE=../../../sandbox/probe python3.X record.py GROUP... > runs/3.X.json

The interpreter needs the libraries of the groups: numpy, pandas, sklearn, torch, jax, keras (on
torch), stdlib; for the formats of other tools IPython, rich and pytest. Libraries are imported once
and each program runs in a fork of that process, with the sandbox's probe installed. Of the reported
programs it also keeps what other tools, and a library's own filters, make of the traceback.
"""

import importlib.util
import json
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SITE = re.compile(r"/[^\s\"']*?/(?:lib/python3\.\d+)/(site-packages/)?")
VERSION = ".".join(map(str, sys.version_info[:2]))
IMPORTS = {"sklearn": ["sklearn.linear_model", "sklearn.svm"], "stdlib": [], "pandas": ["pandas"]}
FORMATS = ("ipython", "rich", "pytest")


def programs():
    """(name, tag, source) of each program, those of reported failures first staged by itself."""
    text = (HERE / "programs.txt").read_text()
    for part in text.split("=== ")[1:]:
        head, _, source = part.partition("\n")
        yield (*head.split(), source)


def run(source, show):
    """How a program ends: exit status, streams and the probe's trace, from a fork."""
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            _child(source, show, folder)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        read = {name: Path(folder, name).read_text() for name in ("out", "err")}
        traces = [json.loads(path.read_text()) for path in Path(folder).glob("trace-*.json")]
    row = {"exit": status, **{name: _plain(text, folder) for name, text in read.items() if text}}
    if traces:
        row["trace"] = json.loads(_plain(json.dumps(traces[0]["error"]), folder))
    return row


def _plain(text, folder):
    text = text.replace(folder + "/", "")
    return SITE.sub(lambda found: f"/env/lib/python{VERSION}/" + (found[1] or ""), text)


def _child(source, show, folder):
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
    path = Path(folder, "repro.py")
    path.write_text(source)
    code = 0
    try:
        SHOW[show](path, source, folder)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        while Path(error.__traceback__.tb_frame.f_code.co_filename).parent != path.parent:
            error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _probed(path, source, folder):
    os.environ.update(REPRISE_TRACE=folder, REPRISE_MAIN=str(os.getpid()))
    sys.path.insert(0, os.environ["PROBE"])
    runpy.run_path(str(Path(os.environ["PROBE"], "sitecustomize.py")))
    _unfilter()
    _execute(path, source)


def _unfilter():
    if "keras" in sys.modules:
        sys.modules["keras"].config.disable_traceback_filtering()
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_traceback_filtering", "off")


def _execute(path, source):
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location("__main__", path)
    )
    sys.modules["__main__"] = module
    exec(compile(source, str(path), "exec"), module.__dict__)


def _plainly(path, source, folder):
    _execute(path, source)


def _ipython(path, source, folder):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_line_magic("colors", "nocolor")
    shell.run_cell(source)


def _rich(path, source, folder):
    from rich.console import Console
    from rich.traceback import install

    install(console=Console(file=sys.stderr, width=100, color_system=None), extra_lines=1)
    _execute(path, source)


def _pytest(path, source, folder):
    import pytest

    body = "".join("    " + line + "\n" for line in source.splitlines())
    test = Path(folder, "test_it.py")
    test.write_text("def test_it():\n" + body)
    raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", str(test)]))


SHOW = {
    "observed": _probed,
    "default": _plainly,
    "ipython": _ipython,
    "rich": _rich,
    "pytest": _pytest,
}


def staged(group, error, at):
    """Programs of which each raises an exception of this class and these words by itself."""
    module = error["module"]
    name = error["exception"] if module == "builtins" else f"{module}.{error['exception']}"
    head = f"import {IMPORTS.get(group, [group])[0]}\n" if group != "stdlib" else ""
    head += f"import {module}\n" if module != "builtins" else ""
    made = f"{name}({error['message']!r})"
    forms = [form.replace("MADE", made) for form in (*STAGED, _OWN + CALLED[group])]
    return [head + forms[(at + step) % len(forms)] for step in (0, 2, 5)]


STAGED = (
    "raise MADE\n",
    """def check(value):
    if value > 2:
        raise MADE
check(3)
""",
    """from unittest import mock
import json
with mock.patch("json.loads", side_effect=MADE):
    json.loads("1")
""",
    """class Layer:
    def __call__(self, x):
        raise MADE
Layer()(3)
""",
    """from concurrent.futures import Future
later = Future()
later.set_exception(MADE)
later.result()
""",
    """try:
    [][1]
except Exception:
    raise MADE
""",
    """error = MADE
raise error
""",
    """import sys
import traceback
try:
    raise MADE
except Exception:
    traceback.print_exc()
    sys.exit(1)
""",
)
CALLED = {
    "torch": """
class Net(torch.nn.Module):
    def forward(self, x):
        raise MADE
Net()(torch.ones(1))
""",
    "keras": "keras.layers.Lambda(own)(keras.ops.ones((1, 1)))\n",
    "numpy": "numpy.apply_along_axis(own, 0, numpy.ones((2, 2)))\n",
    "pandas": "pandas.Series([1, 2]).map(own)\n",
    "sklearn": """
from sklearn.preprocessing import FunctionTransformer
FunctionTransformer(own).fit_transform([[1.0]])
""",
    "jax": "jax.jit(own)(1.0)\n",
    "stdlib": "import functools\nfunctools.reduce(own, [1, 2])\n",
}
_OWN = "def own(*given):\n    raise MADE\n"


def main(groups):
    found, number = [], 0
    os.environ["KERAS_BACKEND"] = "torch"
    for group in groups:
        for name in IMPORTS.get(group, [group]):
            importlib.import_module(name)
        rows = [row for row in programs() if row[0].split("-")[0] == group]
        for at, (name, tag, source) in enumerate(rows):
            row = {"name": name, "tag": tag, "source": source, **run(source, "observed")}
            found.append(row)
            if tag == "reported" and "trace" not in row:
                raise SystemExit(f"{name} does not fail: {row}")
            if tag == "reported":
                tool = FORMATS[number % len(FORMATS)]
                known = importlib.util.find_spec(tool if tool != "ipython" else "IPython")
                shows = ("default", tool) if known else ("default",)
                number += 1
                row["shown"] = {show: run(source, show).get(STREAM[show], "") for show in shows}
                error = row["trace"]
                for text in staged(group, error, at):
                    made = {"name": name, "tag": "staged", "source": text, **run(text, "observed")}
                    seen = made.get("trace", error)
                    if (seen["exception"], seen["message"]) == (
                        error["exception"],
                        error["message"],
                    ):
                        found.append(made)
        sys.stderr.write(group + " ")
    json.dump(list(map(compact, found)), sys.stdout, indent=0)


def compact(row):
    """A run without what its trace says as well, its frames as lines of text."""
    if "trace" in row:
        row.pop("err", None)
        row["trace"] = _lines(row["trace"])
    return row


def _lines(error):
    fields = ("path", "line", "function", "code")
    frames = ["|".join(str(frame[field]) for field in fields) for frame in error["frames"]]
    return {**error, "frames": frames, "chained": list(map(_lines, error["chained"]))}


STREAM = {"default": "err", "rich": "err", "ipython": "out", "pytest": "out"}

if __name__ == "__main__":
    main(sys.argv[1:])
