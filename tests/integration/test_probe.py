"""The probe in a real Python: what it writes down, and that the program cannot tell it is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sandbox

PROBE = Path(sandbox.__file__).parent / "probe"


@pytest.fixture
def run(tmp_path):
    def start(source, seed=None, **env):
        (tmp_path / "repro.py").write_text(source)
        variables = {
            "PYTHONPATH": str(PROBE),
            "REPRISE_TRACE": ".reprise",
            "PYTHONDONTWRITEBYTECODE": "1",
            **env,
        }
        if seed is not None:
            variables["REPRISE_SEED"] = str(seed)
        (tmp_path / ".reprise").mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "repro.py"],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        traces = [
            json.loads(path.read_text())
            for path in sorted((tmp_path / ".reprise").glob("trace-*.json"))
        ]
        return done, traces

    return start


def test_an_escaped_exception_is_written_down_with_its_frames_and_cause(run):
    done, traces = run(
        "def f():\n    try:\n        {}['a']\n    except KeyError as e:\n        raise ValueError('bad\\nthing') from e\nf()\n"
    )
    assert done.returncode == 1
    assert "ValueError: bad" in done.stderr
    (trace,) = traces
    error = trace["error"]
    assert trace["main"]
    assert (error["exception"], error["message"]) == ("ValueError", "bad\nthing")
    assert [frame["function"] for frame in error["frames"]] == ["<module>", "f"]
    assert error["frames"][-1]["code"].startswith("raise ValueError")
    assert error["chained"][0]["exception"] == "KeyError"


def test_a_library_that_replaces_the_hook_does_not_hide_the_exception(run):
    _, traces = run(
        "import sys\nsys.excepthook = lambda *a: print('pretty')\ndef f(): 1 / 0\nf()\n"
    )
    assert [
        (trace["error"]["exception"], trace["error"]["frames"][-1]["function"]) for trace in traces
    ] == [("ZeroDivisionError", "f")]


def test_a_program_that_changes_directory_is_still_traced(run):
    _, traces = run("import os\nos.chdir('/')\n1 / 0\n")
    assert [trace["error"]["exception"] for trace in traces] == ["ZeroDivisionError"]


def test_a_thread_and_a_child_are_not_taken_for_the_program(run):
    source = (
        "import subprocess, sys, threading\n"
        "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()\n"
        "subprocess.run([sys.executable, '-c', '[][0]'])\n"
    )
    done, traces = run(source)
    assert done.returncode == 0
    kinds = {(trace["error"]["exception"], trace["where"], trace["main"]) for trace in traces}
    assert kinds == {("ZeroDivisionError", "thread", True), ("IndexError", "main", False)}


def test_the_seed_decides_and_nothing_else(run):
    source = "import random\nprint(random.random())\n"
    assert run(source, seed=3)[0].stdout == run(source, seed=3)[0].stdout
    assert run(source, seed=3)[0].stdout != run(source, seed=4)[0].stdout
    assert run(source)[0].stdout != run(source)[0].stdout


def test_a_library_is_seeded_when_it_is_imported(run, tmp_path):
    (tmp_path / "numpy.py").write_text(
        "class random:\n    @staticmethod\n    def seed(n): print('seeded', n)\n"
    )
    assert run("import numpy\nprint('on')\n", seed=5)[0].stdout == "seeded 5\non\n"


def test_an_environment_keeps_its_own_sitecustomize(run, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("print('own')\n")
    assert run("print('on')\n", PYTHONPATH=f"{PROBE}:{other}")[0].stdout == "own\non\n"


def test_a_message_that_cannot_be_printed_is_no_trouble(run):
    _, traces = run("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E\n")
    assert traces[0]["error"]["message"] == "<unprintable: RuntimeError>"


def test_names_are_found_in_modules(tmp_path):
    asked = [
        sys.executable,
        str(PROBE / "names.py"),
        "Path,nothing,dumps",
        "no_such_module,pathlib,json",
    ]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {"Path": "pathlib", "dumps": "json"}


def test_names_are_found_in_the_parts_of_a_package():
    asked = [sys.executable, str(PROBE / "names.py"), "JSONEncoder,JSONTool,py_scanstring", "json"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {"JSONEncoder": "json", "py_scanstring": "json.decoder"}


def test_what_a_program_reaches_is_written_down_and_nothing_else_changes(run, tmp_path):
    (tmp_path / "_reprise_reached.py").write_bytes((PROBE / "reached.py").read_bytes())
    source = (
        "import json, threading\n\n"
        "def never():\n    json.dumps(1)\n\n"
        "def work():\n    print(json.dumps([1],\n        indent=2))\n\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
        "json.loads('{bad')\n"
    )
    wanted = [
        ["json/encoder.py", "encode"],
        ["json/decoder.py", "decode"],
        ["json/tool.py", "main"],
    ]
    plain, _ = run(source)
    done, traces = run(source, PYTHONPATH=f"{PROBE}:{tmp_path}", REPRISE_WANTED=json.dumps(wanted))
    assert (done.returncode, done.stdout, done.stderr) == (1, plain.stdout, plain.stderr)
    assert traces[0]["error"]["exception"] == "JSONDecodeError"
    (path,) = (tmp_path / ".reprise").glob("reached-*.json")
    reached = json.loads(path.read_text())
    assert {tuple(row) for row in reached["entered"]} == {
        ("json/encoder.py", "encode"),
        ("json/decoder.py", "decode"),
    }
    lines = {line for name, line in reached["lines"] if name == "repro.py"}
    assert {7, 8, 10, 13} <= lines
    assert not {4} & lines


def test_a_library_that_hides_its_frames_shows_them(run, tmp_path):
    (tmp_path / "keras.py").write_text(
        "class config:\n    hidden = True\n"
        "    def disable_traceback_filtering():\n        config.hidden = False\n"
    )
    done, _ = run("import keras\nprint(keras.config.hidden)\n", seed=1)
    assert done.stdout == "False\n"
