"""A program of a repository as a script without it: the layout, its imports and inputs, and the
rule for code that is copied from the repository.
"""

import pytest

from bot.issues.proof import standalone
from bot.issues.proof.standalone import ProgramTrace, layouts, with_fewer_arguments, without_tree
from bot.issues.reduce import inline, inputs
from bot.issues.reduce.edits import apply_reductions
from bot.issues.signature import copied
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import Frame
from bot.kernel.environment import Environment

CHECK = '''import os


class Layer:
    @staticmethod
    def check(size: int, rows=None) -> int:
        """Whether it fits."""
        print("checking")
        limit = 4
        if rows is None:
            return 0
        for row in rows:
            limit += row
        if size % 2:
            raise ValueError(f"size {size} is not even")
        return limit
'''
CODE = copied.fault_code("lib/layer.py", CHECK, 15)
KEPT = """def check(size, rows=None):
    if rows is None:
        return 0
    if size % 2:
        raise ValueError(f"size {size} is not even")


check(5, [])
"""


def holds(text):
    return copied.is_contained(Script(files={"repro.py": text}, fault_code=CODE))


def test_statements_of_the_code_that_raises_may_be_missing():
    assert "staticmethod" in CODE.text
    assert holds("\n\nclass Layer:\n" + KEPT.replace("def", "    @staticmethod\n    def").replace("\n    ", "\n        ").replace("        @", "    @").replace("        def", "    def"))  # fmt: skip
    assert holds(CHECK)
    assert holds(CHECK.replace('        print("checking")\n', ""))
    assert holds(CHECK.replace("        return limit\n", ""))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if size % 2:", "if size % 3:"),
        ("        if size % 2:\n            raise", "        if True:\n            raise"),
        ("        if size % 2:\n            raise", "        raise"),
        ("        if rows is None:\n            return 0\n", ""),
        ("        limit = 4\n", ""),
        ("            limit += row\n", "            pass\n"),
        ("size {size} is not even", "size {size} is odd"),
        ("def check(size: int", "def verify(size: int"),
        ("rows=None", "rows=()"),
        ('        print("checking")\n', '        print("checking")\n        size = 5\n'),
    ],
)
def test_code_that_was_changed_or_lost_what_decides_is_none_of_the_repositorys(old, new):
    """A return before the raise, its condition, and an assignment that what is left reads."""
    assert old in CHECK
    assert not holds(CHECK.replace(old, new))


def test_what_did_not_run_had_no_part_in_the_failure():
    ran = frozenset({6, 8, 9, 10, 12, 14, 15})
    code = copied.fault_code("lib/layer.py", CHECK, 15, ran)
    without = CHECK.replace("        if rows is None:\n            return 0\n", "        if rows is None:\n            pass\n")  # fmt: skip
    script = Script(files={"repro.py": without}, fault_code=code)
    assert copied.is_contained(script)
    assert not holds(without)


def test_a_failure_in_a_copy_has_the_place_of_the_original():
    script = Script(files={"repro.py": "import os\n" + CHECK}, fault_code=CODE)
    frame = Frame(path="/work/repro.py", line=16, function="Layer.check", code="raise ValueError(")
    failure = Failure(exception="ValueError", message="size 5 is not even", frames=(frame,))
    placed = copied.with_places(failure, script)
    assert (placed.innermost.module_path, placed.innermost.line) == ("lib/layer.py", 15)
    assert copied.is_repositorys(placed, script)
    elsewhere = failure.model_copy(update={"frames": (frame.model_copy(update={"line": 14}),)})
    assert not copied.is_repositorys(copied.with_places(elsewhere, script), script)


def test_code_of_a_module_is_a_statement():
    source = (
        "import sys\nsize = len(sys.argv)\nif size:\n    print(size)\n    raise ValueError(size)\n"
    )
    code = copied.fault_code("train.py", source, 5)
    assert code.text.startswith("if size")
    kept = Script(
        files={"a.py": "size = 1\nif size:\n    raise ValueError(size)\n"}, fault_code=code
    )
    assert copied.is_contained(kept)


PARSER = """import sys
sys.argv = ['train.py', 'rows.csv', '--size', '5', '--sizes', '1', '2', '--verbose', '--lr=0.5']
import argparse
def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--mode", default="fast", choices=["fast", "slow"])
    return parser.parse_args()
args = parse()
print(args.data, args.size, args.sizes, args.verbose, args.quiet, args.lr, args.mode)
"""


def run(text):
    shown = []
    exec(compile(text, "train.py", "exec"), {"print": lambda *row: shown.append(row)})
    return shown


@pytest.mark.parametrize("known", [False, True])
def test_arguments_become_a_namespace_with_the_same_values(monkeypatch, known):
    monkeypatch.setattr("sys.argv", ["x"])
    program = PARSER.replace("parse_args()", "parse_known_args()[0]") if known else PARSER
    files = {"train.py": program}
    edit = next(inputs.input_edits(files))
    smaller = apply_reductions(files, [edit])["train.py"]
    assert "add_argument" not in smaller
    assert run(program) == run(smaller) == [("rows.csv", 5, [1, 2], True, False, 0.5, "fast")]


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        ("config.json", '{"depth": 3, "names": ["a"]}', "json.load(file)"),
        ("config.yaml", "depth: 3\nnames: [a]\n", "yaml.safe_load(file)"),
    ],
)
def test_a_configuration_file_becomes_its_value(name, text, call):
    files = {
        name: text,
        "a.py": f"with open('{name}') as file:\n    config = {call}\nprint(config)\n",
    }
    edit = next(one for one in inputs.input_edits(files) if "value" in one.what)
    smaller = apply_reductions(files, [edit])
    assert list(smaller) == ["a.py"]
    assert run(smaller["a.py"]) == [({"depth": 3, "names": ["a"]},)]


def test_a_configuration_of_anchors_is_left_alone():
    bomb = "a: &a [x, x]\nb: [*a, *a]\n"
    files = {"c.yaml": bomb, "a.py": "import yaml\nconfig = yaml.safe_load(stream)\n"}
    assert not list(inputs.input_edits(files))


MODULE = (
    "from __future__ import annotations\nimport math\n\n\ndef root(x):\n    return math.sqrt(x)\n"
)


@pytest.mark.parametrize(
    "user",
    [
        "from lib.roots import root\nprint(root(4))\n",
        "import os\nfrom lib.roots import root as r\nprint(r(4))\n",
        "import lib.roots\nprint(lib.roots.root(4))\n",
        "import lib.roots as roots\nprint(roots.root(4))\n",
        "from lib import roots\nprint(roots.root(4))\n",
        "def main():\n    from lib.roots import root as r\n    print(r(4))\nmain()\n",
        "from lib.roots import root\nimport lib.roots\nprint(lib.roots.root(4))\n",
    ],
)
def test_a_module_stands_in_the_file_that_imports_it(user):
    files = {"a.py": user, "lib/roots.py": MODULE}
    edits = [one for one in inline.inline_edits(files, "a.py") if one.drops]
    smaller = [apply_reductions(files, [edit]) for edit in edits]
    assert {len(one) for one in smaller} == {1}
    assert run(smaller[0]["a.py"]) == [(2.0,)]


def test_a_module_that_two_files_import_stays():
    files = {"a.py": "import b\nimport m\n", "b.py": "import m\n", "m.py": "x = 1\n"}
    assert [one.what for one in inline.inline_edits(files, "a.py") if one.drops] == ["b.py in a.py"] * 2  # fmt: skip


def laid_out(files, trace, **fields):
    script = Script(files={fields["entry"]: files[fields["entry"]]}, **fields)
    tree = {path: text.encode() for path, text in files.items()}
    return list(layouts(script, tree, trace, None))


def every_line(files):
    return frozenset((p, n) for p, t in files.items() for n in range(1, len(t.splitlines()) + 1))


def test_a_package_with_relative_imports_is_laid_out_by_its_names():
    files = {
        "src/pkg/__main__.py": "from . import api\nfrom .api import Model\nprint(Model, api)\n",
        "src/pkg/__init__.py": "",
        "src/pkg/api.py": "from .deep.model import Model\n",
        "src/pkg/deep/model.py": "from ..names import NAME\nclass Model: pass\n",
        "src/pkg/names.py": "NAME = 1\n",
        "src/pkg/unused.py": "",
    }
    names = {"pkg": "__init__", "pkg.api": "api", "pkg.deep.model": "deep/model", "pkg.names": "names"}  # fmt: skip
    modules = {name: f"src/pkg/{path}.py" for name, path in names.items()}
    trace = ProgramTrace(every_line(files), frozenset(), modules)
    entry, command = "src/pkg/__main__.py", ("-m", "pkg", "--size", "3")
    script = laid_out(files, trace, entry=entry, command=command)[0]
    assert set(script.files) == {"repro.py", "pkg/api.py", "pkg/deep/model.py", "pkg/names.py"}  # fmt: skip
    assert not script.command
    main = script.files["repro.py"]
    assert main.startswith("import sys\nsys.argv = ['repro.py', '--size', '3']\n")
    assert "from pkg import api\nfrom pkg.deep.model import Model" in main
    assert "from pkg.names import NAME" in script.files["pkg/deep/model.py"]


def test_what_did_not_run_is_left_out_and_small_data_is_there_for_either_folder():
    files = {
        "tools/train.py": "def never():\n    return 1\n\n\nif 0:\n    x = 1\nelse:\n    x = 2\nopen('a.txt')\n",
        "tools/a.txt": "text\n",
        "tools/.reprise/sitecustomize.py": "raise SystemExit\n",
        "tools/.reprise/key": "mine",
        "tools/picture.png": "\0\1",
    }
    lines = frozenset(("tools/train.py", line) for line in (1, 5, 8, 9))
    opened = frozenset({"tools/a.txt", "tools/.reprise/key", "tools/picture.png", "../etc/passwd"})
    trace = ProgramTrace(lines, opened)
    script = laid_out(files, trace, entry="tools/train.py", command=("tools/train.py",))[0]
    assert set(script.files) == {"repro.py", "a.txt", "tools/a.txt", "tools/.reprise/key"}  # fmt: skip
    assert script.source == "def never():\n    pass\n\n\nif 0:\n    pass\nelse:\n    x = 2\nopen('a.txt')\n"  # fmt: skip


def test_a_test_is_called_where_it_needs_no_fixture():
    text = "class TestA:\n    def test_sum(self):\n        assert 1 == 2\n\n\ndef test_fixture(tmp_path):\n    assert tmp_path\n"
    files = {"tests/test_a.py": text}
    start = {"entry": "tests/test_a.py"}
    trace = ProgramTrace(every_line(files), frozenset(), {"test_a": "tests/test_a.py"})
    words = ("-m", "pytest", "tests/test_a.py::TestA::test_sum", "-x")
    assert laid_out(files, trace, command=words, **start)[0].source.endswith(
        "\n\nTestA().test_sum()\n"
    )
    words = ("-m", "pytest", "tests/test_a.py::test_fixture")
    assert not laid_out(files, trace, command=words, **start)


@pytest.mark.parametrize(
    ("message", "source", "is_lost"),
    [
        ("name 'model' is not defined", "if 0:\n    model = 1\nmodel.eval()\n", True),
        ("name 'modle' is not defined", "model = 1\nmodle.eval()\n", False),
        ("cannot access local variable 'x' where it is not associated with a value", "def f():\n    if 0: x = 1\n    return x\n", True),
        ("local variable 'x' referenced before assignment", "def f():\n    if 0: x = 1\n    return x\n", True),
        ("size 5 is not even", "size = 5\n", False),
    ],
)  # fmt: skip
def test_a_name_that_the_program_binds_elsewhere_is_lost_by_leaving_that_out(
    message, source, is_lost
):
    failure = Failure(exception="NameError", message=message)
    trace = ProgramTrace(frozenset({("a.py", 1)}))
    assert standalone._is_of_absence(failure, {"a.py": source}, trace) is is_lost


def test_the_environment_has_nothing_of_the_clone():
    environment = Environment(
        id="x",
        python="3.11",
        interpreter="python",
        mounts=("/py", "/trees/a"),
        variables={"PYTHONPATH": "/trees/a:/trees/a/src:/trees/ab", "HOME": "/"},
        commit="a" * 40,
        tree="/trees/a",
    )
    alone = without_tree(environment)
    assert (alone.mounts, alone.tree, alone.roots) == (("/py",), "", ())
    assert alone.variables == {"PYTHONPATH": "/trees/ab", "HOME": "/"}


def test_the_words_of_a_command_are_dropped_option_by_option(monkeypatch):
    needed = {("--size", "5")}

    class Runs:
        count = 0

        def __init__(self, *_):
            pass

        def fails(self, script, _test, *, final):
            words = list(zip(script.command, script.command[1:], strict=False))
            return all(pair in words for pair in needed)

    class Runner:
        class ports:
            clock = staticmethod(lambda: 0.0)

    monkeypatch.setattr(standalone, "FreshRuns", Runs)
    command = ("train.py", "in.csv", "--lr", "1", "--size", "5", "--many", "1", "2", "-v")
    script = Script(files={"train.py": ""}, entry="train.py", command=command)
    shorter, _ = with_fewer_arguments(Runner, script, None, None, 1.0)
    assert shorter.command == ("train.py", "--size", "5")
