"""The files of a tree for a run: no link is followed, and a giant one is cut; of a fix only what it
edited lies over them.
"""

from pathlib import Path

import pytest

from bot.kernel import launch, tree_programs, trees
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature, Frame, Issue, ScriptFix
from bot.kernel.environment import Environment
from sandbox.port import RunSpec
from tests.support.jobs import job_options


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    secret = tmp_path / "secret.txt"
    secret.write_text("outside")
    root = tmp_path / "tree"
    (root / "lib").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    (root / "a.py").write_text("1")
    (root / "lib" / "b.py").write_text("2")
    (root / "link.txt").symlink_to(secret)
    (root / "linked").symlink_to(tmp_path)
    return root


def test_only_regular_files_inside_are_read(tree: Path) -> None:
    assert trees.read_tree(str(tree)) == {"a.py": b"1", "lib/b.py": b"2"}


def test_no_folder_is_not_the_current_one() -> None:
    assert trees.read_tree("") == {}


@pytest.mark.parametrize(("name", "limit"), [("MOST_FILES", 1), ("MOST_BYTES", 1)])
def test_a_giant_tree_is_cut(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(trees, name, limit)
    trees.read_tree.cache_clear()
    assert trees.read_tree(str(tree)) == {"a.py": b"1"}
    trees.read_tree.cache_clear()


FIX = ScriptFix(what="CUDA calls are answered on the CPU", why="")


def run_spec(tree: Path, **fields: object) -> RunSpec:
    """A run at a commit whose `a.py` is not the one that the report is about."""
    files = {"a.py": "0", "conf.yaml": "epochs: 1"}
    script = Script(files=files, entry="a.py", command=("a.py",), fixes=(FIX,), **fields)
    here = Environment(id="here", python="3", interpreter="python", tree=str(tree))
    return launch.spec(script, here, job_options(), CrashSignature(exception="E"), 1, "run 1")


def test_a_fix_lays_only_what_it_edited_over_another_commit(tree: Path) -> None:
    spec = run_spec(tree, variables={launch.CUDA: "cpu"})
    assert (spec.files["a.py"], "conf.yaml" in spec.files) == (b"1", False)
    spec = run_spec(tree, edited=("conf.yaml",))
    assert (spec.files["a.py"], spec.files["conf.yaml"]) == (b"1", b"epochs: 1")
    assert run_spec(tree, edited=("a.py",)).files["a.py"] == b"0"


def test_cuda_is_answered_only_where_a_fix_says_so_and_by_no_file_of_the_tree(tree: Path) -> None:
    (tree / ".reprise").mkdir()
    (tree / launch.CUDA_PROBE).write_text("print('mine')")
    trees.read_tree.cache_clear()
    spec = run_spec(tree, variables={launch.CUDA: "cpu"})
    assert spec.files[launch.CUDA_PROBE] == launch.probe("cuda_on_cpu.py")
    assert spec.env[launch.CUDA] == "cpu"
    spec = run_spec(tree)
    assert (launch.CUDA_PROBE in spec.files, launch.CUDA in spec.env) == (False, False)
    trees.read_tree.cache_clear()


TESTED = {
    "tests/test_net.py": b"import unittest\n\n\nclass NetTest(unittest.TestCase):\n    def test_size(self):\n        self.fail()\n",
    "tests/__init__.py": b"",
    "src/lib.py": b"",
}


@pytest.mark.parametrize(
    ("command", "ids"),
    [
        ("python -m unittest tests.test_net.NetTest.test_size", ("tests/test_net.py::NetTest::test_size",)),
        ("python -m unittest tests.test_net.test_size", ("tests/test_net.py::NetTest::test_size",)),
        ("python -m unittest -v tests.test_net", ("tests/test_net.py",)),
        ("python -m unittest tests/test_net.py", ("tests/test_net.py",)),
        ("cd tests && python -m unittest test_net.NetTest", ("test_net.py::NetTest",)),
    ],
)  # fmt: skip
def test_tests_of_unittest_are_run_by_pytest(command, ids):
    script = tree_programs.of_command(command, TESTED)
    assert script.command == ("-m", "pytest", *ids)
    assert script.entry == "tests/test_net.py"
    assert [fix.why for fix in script.fixes] == [tree_programs.BY_PYTEST]


@pytest.mark.parametrize("command", ["python -m unittest", "python -m unittest tests.test_other"])
def test_tests_of_unittest_that_are_not_there_are_none(command):
    assert tree_programs.of_command(command, TESTED) is None


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("train.py", ["code/train.py"]),
        ("./train.py", ["code/train.py"]),
        ("/home/me/net/code/train.py", ["code/train.py"]),
        ("run.py", []),
        ("rain.py", []),
        ("/venv/lib/python3.8/site-packages/code/train.py", []),
    ],
)
def test_a_frame_is_in_the_only_file_whose_path_ends_so(path: str, files: list[str]) -> None:
    tree = dict.fromkeys(("code/train.py", "a/run.py", "b/run.py"), b"")
    assert trees.tree_files(Frame(path=path), tree) == files


def test_the_files_of_a_tree_are_listed_by_folder_and_the_rest_is_counted() -> None:
    tree = {
        "train.py": b"a\nb\n",
        "LICENSE": b"x",
        "net/core.py": b"a\n",
        "deep/er/still.py": b"a\n",
        **{f"data/{number:02}.dat": b"" for number in range(60)},
    }
    rows = tree_programs.list_files(Issue(title="still.py fails", body=""), tree).splitlines()
    assert rows[0] == "./: LICENSE, train.py (2)"
    assert "deep/er/: still.py (1)" in rows
    assert "net/: core.py (1)" in rows
    data = next(row for row in rows if row.startswith("data/: 00.dat, 01.dat"))
    assert data.endswith(", 16 more")
