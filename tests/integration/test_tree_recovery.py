"""Programs of a repository that end before the reported failure are brought to it: really run."""

import hashlib
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from bot.kernel.bug import DAY_END, Commit, Issue, Release
from bot.kernel.environment import Environment, EnvironmentSpec, Package, RepoSource
from bot.kernel.errors import UserError
from bot.kernel.job import PROOFS
from bot.kernel.ports import Commits, Ports
from bot.kernel.report import IssueReport
from bot.products.engine import execute as run
from tests.support.engine import FakeCommits
from tests.support.fakes import FakeBuilder, FrozenClock, ListListener, MemoryJournal
from tests.support.jobs import issue_job
from tests.support.plain_runs import run_spec
from tests.support.sandbox import FakeSandbox

DAY, HEAD, BEFORE = date(2026, 1, 2), "a" * 40, "b" * 40
FAULT = "def go(rows):\n    return rows[3]\n"
TRACE = """
```
Traceback (most recent call last):
  File "/home/me/acme/main.py", line 9, in <module>
    go([])
  File "/home/me/acme/parts.py", line 2, in go
    return rows[3]
IndexError: list index out of range
```
"""


def reproduced(
    place: Path,
    files: dict[str, str],
    body: str,
    commits: Commits | None = None,
    *,
    reaches: bool = True,
    **index: object,
) -> IssueReport:
    """The report on a program of a tree with these files; a file below a folder that has the name
    of a commit is of that commit alone.
    """
    for path, text in {"parts.py": FAULT, **files}.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)

    def build(spec: EnvironmentSpec) -> Environment:
        packages = [
            Package(name=row.name, version=row.specifier.removeprefix("==") or "1.0", rung=row.rung)
            for row in spec.requirements
        ]
        ref = spec.repo.ref if spec.repo is not None else ""
        tree = place / ref if ref not in {"", HEAD} else place
        return Environment(
            id=hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:24],
            python="3.11.7",
            interpreter=sys.executable,
            packages=tuple(packages),
            variables={"PYTHONPATH": f"{tree}:{tree}/src"},
            commit=ref or HEAD,
            tree=str(tree),
        )

    day = datetime.combine(DAY, DAY_END, UTC)
    issue = Issue(title="go fails", body=body, repository="acme/acme", created_at=day)
    ports = Ports(
        sandbox=FakeSandbox(run_spec, reaches=reaches),
        builder=FakeBuilder(on_build=build, **index),  # type: ignore[arg-type]
        journal=MemoryJournal(),
        clock=FrozenClock(step=0.1),
        listener=ListListener(),
        commits=commits,
    )
    return run(issue_job(issue, repo="/clone", without=PROOFS), ports)


CALL = "from parts import go\ngo([])\n"


@pytest.mark.parametrize(
    ("files", "what"),
    [
        (
            {"main.py": f"from no_such_thing.parts import f, g as h\nimport no_such_thing\n{CALL}"},
            "an empty module stands in for `no_such_thing`",
        ),
        (
            {
                "main.py": "import argparse\np = argparse.ArgumentParser()\n"
                f"p.add_argument('-n', '--number', type=int, required=True)\np.parse_args()\n{CALL}"
            },
            "started as `python main.py --number 1`",
        ),
        (
            {
                "main.py": "import argparse\np = argparse.ArgumentParser()\n"
                "p.add_argument('-c')\n"
                f"assert p.parse_args().c, 'give a file: -c x.json'\n{CALL}",
                "README.md": "    python main.py -c small.json\n",
            },
            "started as `python main.py -c small.json`",
        ),
        (
            {"main.py": f"with open('out/log.txt', 'w') as file:\n    pass\n{CALL}"},
            "made the folder `out`",
        ),
        (
            {
                "main.py": "from parts import go\ndef demo(): ...\n"
                "if __name__ == '__main__':\n    demo()\n    # go([])\n"
                "def go(rows):\n    import parts\n    parts.go(rows)\n"
            },
            "called `go([])` in place of `demo()`",
        ),
        (
            {
                "main.py": f"from nets import model\n{CALL}",
                "nets/__init__.py": "",
                "nets/model.py": "import layers\nlayers.x\n",
                "nets/layers.py": "from . import parts\nx = 1\n",
                "nets/parts.py": "",
            },
            "`layers` is `nets.layers`",
        ),
        (
            {
                "main.py": f"from nets import model\n{CALL}",
                "nets/model.py": "import layers\n",
                "nets/layers.py": "x = 1\n",
            },
            "put `nets` on the path",
        ),
        (
            {"main.py": f"from light import x\n{CALL}", "light/light/__init__.py": "x = 1\n"},
            "put `light` on the path",
        ),
        (
            {
                "main.py": f"from acme.layers import x\nfrom acme import y\n{CALL}",
                "__init__.py": "from .layers import x as y\n",
                "layers.py": "x = 1\n",
            },
            "the repository is the package `acme`",
        ),
        (
            {"main.py": f"import layers\n{CALL}", "third/parts/layers.py": "x = 1\n"},
            "put `third/parts` on the path",
        ),
        (
            {
                "tools/main.py": f"from nets import _C\n{CALL}",
                "nets/__init__.py": "",
                "setup.py": "extension = CppExtension\nextension('nets._C', ['a.cpp'])\n",
            },
            "an empty module stands in for `nets._C`",
        ),
    ],
)
def test_what_comes_before_the_failure_is_got_past(
    tmp_path: Path, files: dict[str, str], what: str
) -> None:
    report = reproduced(tmp_path, files, f"It fails.\n{TRACE}")
    assert report.script is not None
    changes = [fix.what for fix in report.script.fixes]
    assert report.verdict.kind == "reproduced", (report.verdict, changes)
    assert what in changes


def test_the_use_of_a_stand_in_is_no_failure_of_the_report(tmp_path: Path) -> None:
    files = {"main.py": f"import no_such_thing\nno_such_thing.Net(3)\n{CALL}"}
    report = reproduced(tmp_path, files, f"It fails.\n{TRACE}")
    assert report.verdict.kind == "setup_failed"
    assert "no_such_thing" in report.verdict.reason


def test_what_only_a_library_imports_is_not_stood_in_for(tmp_path: Path) -> None:
    source = f"import importlib\nimportlib.import_module('no_such_thing')\n{CALL}"
    report = reproduced(tmp_path, {"main.py": source}, f"It fails.\n{TRACE}")
    assert report.verdict.kind == "setup_failed"
    assert report.script is not None
    assert all("stands in" not in fix.what for fix in report.script.fixes)


def test_what_passes_with_a_stand_in_refutes_nothing(tmp_path: Path) -> None:
    files = {"main.py": "import no_such_thing\nfrom parts import go\ngo([1, 2, 3, 4])\n"}
    report = reproduced(tmp_path, files, f"```\npython main.py\n```\n{TRACE}")
    assert report.verdict.kind == "inconclusive"
    assert "stands in for `no_such_thing`" in report.verdict.reason


@pytest.mark.parametrize("joint", [" && python ", "\npython ", "; python "])
def test_the_commands_before_the_failing_one_make_what_it_reads(tmp_path: Path, joint: str) -> None:
    files = {
        "make.py": "import pathlib\npathlib.Path('made.txt').write_text('x')\n",
        "main.py": f"open('made.txt').read()\n{CALL}",
    }
    body = f"```\npython make.py{joint}main.py\n```\n{TRACE}"
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "reproduced", report.verdict
    assert not report.verdict.doubt, "the program itself signs its trace"
    assert report.script is not None
    assert report.script.steps == (("make.py",),)
    assert report.script.fixes[-1].what == "ran `python make.py` before it"


def test_a_step_that_fails_ends_the_run(tmp_path: Path) -> None:
    files = {"make.py": "raise SystemExit(3)\n", "main.py": f"open('made.txt').read()\n{CALL}"}
    body = f"```\npython make.py && python main.py\n```\n{TRACE}"
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "inconclusive"


def test_the_release_that_has_a_name_is_installed(tmp_path: Path) -> None:
    """A name of the standard library stands for one of a library that its new release lacks."""
    files = {"main.py": f"import os\nif not os.environ.get('OLD'):\n    os.gone\n{CALL}"}
    names = {"os.gone": ("oslib", "0.9")}
    report = reproduced(tmp_path, files, f"It fails.\n{TRACE}", names=names)
    assert report.spec is not None
    assert [row.specifier for row in report.spec.requirements if row.name == "oslib"] == ["==0.9"]
    assert any("asks for os.gone, which oslib" in note.text for note in report.notes)


def test_a_library_that_asks_for_what_cannot_be_had_gets_a_release_that_does_without(
    tmp_path: Path,
) -> None:
    source = f"import sys\nsys.path.insert(0, {str(tmp_path / 'env')!r})\nimport acme_lib\n{CALL}"
    files = {"main.py": source, "env/acme_lib.py": "import no_such_thing\n"}
    names = {"no_such_thing": ("acme-lib", "2.0")}
    report = reproduced(tmp_path, files, f"It fails.\n{TRACE}", names=names)
    assert report.spec is not None
    releases = [row.specifier for row in report.spec.requirements if row.name == "acme-lib"]
    assert releases == ["==2.0"]
    assert any("does without" in note.text for note in report.notes)


def test_what_a_program_imports_anywhere_is_installed_at_once(tmp_path: Path) -> None:
    """What is imported in functions is not installed at first, where files ask for packages."""
    later = "def f():\n    import no_such_b\n    import no_such_a, no_such_c\n"
    files = {"main.py": f"{later}f()\n{CALL}", "requirements.txt": "six\n"}
    report = reproduced(tmp_path, files, f"It fails.\n{TRACE}")
    installs = [row.change for row in report.attempts if row.change.endswith("installed")]
    assert installs == ["with no-such-b, no-such-a, no-such-c installed"]
    assert report.verdict.kind == "reproduced"


def test_the_frames_of_a_library_tell_its_release_beside_a_tree(tmp_path: Path) -> None:
    files = {"main.py": f"try:\n    import oslib\nexcept ImportError:\n    pass\n{CALL}"}
    frame = '  File "/e/lib/python3.11/site-packages/oslib/core.py", line 9, in f\n    return g()\n'
    trace = TRACE.replace("IndexError", f"{frame}IndexError")
    report = reproduced(tmp_path, files, f"It fails.\n{trace}", lines={"oslib": "0.9"})
    assert any("the quoted traceback fits oslib 0.9" in note.text for note in report.notes)
    assert report.spec is not None
    assert report.spec.repo is not None, "the tree stays"


@pytest.mark.parametrize(("hour", "kind"), [(12, "reproduced"), (-12, "not_reproduced")])
def test_a_fix_of_the_day_of_the_report_does_not_hide_what_was_before(
    tmp_path: Path, hour: int, kind: str
) -> None:
    fixed = "def go(rows):\n    return rows[:3]\n"
    files = {"main.py": CALL, "parts.py": fixed}
    old = {f"{BEFORE}/{path}": text for path, text in {**files, "parts.py": FAULT}.items()}
    moment = datetime.combine(DAY, time(), UTC)
    commits = FakeCommits(
        (
            Commit(id=BEFORE, date=moment - timedelta(days=9), subject="go"),
            Commit(id=HEAD, date=moment + timedelta(hours=hour), subject="fix go"),
        ),
        files={BEFORE: {**files, "parts.py": FAULT}, HEAD: files},
    )
    # The lines that the report quotes tell nothing: it shows none of the tree.
    trace = TRACE.replace("    return rows[3]\n", "").replace("    go([])\n", "")
    report = reproduced(
        tmp_path, {**files, **old}, f"```\npython main.py\n```\n{trace}", commits=commits
    )
    assert report.verdict.kind == kind
    notes = [note.text for note in report.notes]
    moved = f"not observed at commit {HEAD[:12]}, but at {BEFORE[:12]}" in notes
    assert moved is (kind == "reproduced")


def test_an_import_that_fails_is_made_with_the_path_that_python_makes(tmp_path: Path) -> None:
    """The root of the tree is put on the path to help programs, not to hide this failure."""
    helped = {"nn/main.py": f"import helpers\n{CALL}", "nn/parts.py": FAULT, "helpers.py": ""}
    body = "```\npython nn/main.py\n```\nModuleNotFoundError: No module named 'helpers'"
    assert reproduced(tmp_path, helped, body).verdict.kind == "reproduced"
    body = f"```\npython nn/main.py\n```\n{TRACE.replace('main.py', 'nn/main.py')}"
    assert reproduced(tmp_path, helped, body).verdict.kind == "reproduced"


class BrokenCommits(FakeCommits):
    """A clone that lacks a part of its history."""

    def changes(
        self, source: RepoSource, commit: str, paths: tuple[str, ...], limit: int
    ) -> tuple[Commit, ...]:
        raise UserError("The clone is not complete.", "Pass a complete one.")


def test_a_clone_without_its_history_is_no_end(tmp_path: Path) -> None:
    files = {"main.py": "from parts import go\ngo([1, 2, 3, 4])\n"}
    trace = TRACE.replace("    return rows[3]\n", "").replace("    go([])\n", "")
    body = f"```\npython main.py\n```\n{trace}"
    report = reproduced(tmp_path, files, body, commits=BrokenCommits())
    assert report.verdict.kind == "not_reproduced"


def test_a_name_that_the_report_itself_misses_is_not_looked_for(tmp_path: Path) -> None:
    files = {"main.py": "import os\nos.gone\n"}
    trace = (
        '```\nTraceback (most recent call last):\n  File "main.py", line 2, in <module>\n'
        "    os.gone\nAttributeError: module 'os' has no attribute 'gone'\n```\n"
    )
    names = {"os.gone": ("oslib", "0.9")}
    report = reproduced(tmp_path, files, f"`python main.py`\n\n{trace}", names=names)
    assert report.verdict.kind == "reproduced"
    assert report.spec is not None
    assert all(row.name != "oslib" for row in report.spec.requirements)


def test_a_module_that_the_report_itself_misses_is_not_put_on_the_path(tmp_path: Path) -> None:
    files = {"main.py": "import layers\n", "nets/layers.py": "x = 1\n"}
    trace = (
        '```\nTraceback (most recent call last):\n  File "main.py", line 1, in <module>\n'
        "    import layers\nModuleNotFoundError: No module named 'layers'\n```\n"
    )
    report = reproduced(tmp_path, files, f"`python main.py`\n\n{trace}")
    assert report.verdict.kind == "reproduced"


def test_a_name_that_a_module_of_the_tree_lacks_is_no_compiled_part(tmp_path: Path) -> None:
    files = {"main.py": f"from nets import other\n{CALL}", "nets.py": "", "setup.py": "setup()\n"}
    report = reproduced(tmp_path, files, f"`python main.py`\n{TRACE}")
    assert report.verdict.kind != "reproduced"
    assert report.script is not None
    assert all("stands in" not in fix.what for fix in report.script.fixes)


def test_a_library_older_than_its_python_gets_a_release_that_is_not(tmp_path: Path) -> None:
    source = f"import sys\nsys.path.insert(0, {str(tmp_path / 'env')!r})\nimport acme_lib\n{CALL}"
    files = {
        "main.py": source,
        "env/acme_lib.py": "raise ValueError('mutable default')\n",
        "requirements.txt": "env\n",
    }
    releases = tuple(
        Release(version=version, uploaded_at=datetime(year, 1, 1, tzinfo=UTC))
        for version, year in (
            ("0.9", 2018),
            ("1.0", 2019),
            ("1.1", 2021),
            ("1.2", 2023),
            ("2.0", 2024),
        )
    )
    body = f"`python main.py`\n{TRACE}"
    report = reproduced(tmp_path, files, body, released={"env": releases})
    assert report.spec is not None
    assert [row.specifier for row in report.spec.requirements if row.name == "env"] == ["==1.2"]


QUOTED = "    loss = (alpha * rows[3] - q_value).mean()"


@pytest.mark.parametrize(
    ("snippet", "is_quoted"),
    [
        (QUOTED.strip(), True),
        (f"import math\n# here\n{QUOTED.strip()}", True),
        ("loss = (beta * rows[3] - q_value).mean()", False),
    ],
)
def test_lines_quoted_from_a_file_of_the_repository_are_no_program(
    tmp_path: Path, snippet: str, is_quoted: bool
) -> None:
    files = {"agent.py": f"def update(rows, alpha=1.0, q_value=0.0):\n{QUOTED}\n"}
    body = (
        "It ends with\n\n```python\nIndexError: list index out of range\n```\n\n"
        f"The original code\n\n```python\n{snippet}\n```\n\nis wrong.\n"
    )
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "inconclusive"
    assert (not report.attempts) == is_quoted
    own = "the code in the bug report is the repository's own"
    assert (own in report.verdict.reason) == is_quoted


def test_the_installation_that_a_report_starts_with_is_no_program_of_it(tmp_path: Path) -> None:
    files = {
        "setup.py": "raise SystemExit('no network')\n",
        "tests/test_parts.py": "import gone.parts\n\ndef test_go():\n    pass\n",
    }
    body = (
        "- `python setup.py install`\n- `python setup.py test`\n- The tests fail with\n\n```\n"
        "tests/test_parts.py:1: in <module>\n    import gone.parts\n"
        "E   ModuleNotFoundError: No module named 'gone'\n```\n"
    )
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "reproduced"
    assert report.script is not None
    assert "pytest" in report.script.command


def test_an_installation_that_fails_is_the_program_where_there_is_no_other(tmp_path: Path) -> None:
    files = {"setup.py": "raise ValueError('no version')\n"}
    body = "`python setup.py install` ends with\n\n```\nValueError: no version\n```\n"
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "reproduced"


NET = "class Net:\n    def __init__(self, width):\n        self.width = width\n"
REFUSED = "TypeError: __init__() got an unexpected keyword argument 'depth'"


def refusal(line: int, code: str, error: str = REFUSED) -> str:
    return (
        '`python main.py`\n\n```\nTraceback (most recent call last):\n  File "main.py", '
        f"line {line}, in <module>\n    {code}\n{error}\n```\n"
    )


@pytest.mark.parametrize(
    ("call", "kind"),
    [("net = Net(rows, depth=2)", "reproduced"), ("net = Net(rows)", "needs_info")],
)
def test_an_error_about_names_arises_without_the_data_that_is_read_before(
    tmp_path: Path, call: str, kind: str
) -> None:
    source = f"from net import Net\nrows = open('data/rows.csv').read()\n{call}\n"
    report = reproduced(tmp_path, {"main.py": source, "net.py": NET}, refusal(3, call))
    assert report.verdict.kind == kind, report.verdict
    assert report.script is not None
    changes = [fix.what for fix in report.script.fixes]
    assert any("ran line 3 of `main.py`" in what for what in changes) is (kind == "reproduced")


def test_a_statement_alone_keeps_what_helped_the_program(tmp_path: Path) -> None:
    call = "net = Net(no_such_part.size, depth=2)"
    source = (
        f"import no_such_part\nfrom net import Net\nrows = open('data/rows.csv').read()\n{call}\n"
    )
    report = reproduced(tmp_path, {"main.py": source, "net.py": NET}, refusal(4, call))
    assert report.verdict.kind == "reproduced", report.verdict
    runs = [attempt.change for attempt in report.attempts if attempt.purpose == "search"]
    assert len(runs) == 3, runs


def test_what_a_statement_alone_shows_says_nothing_else(tmp_path: Path) -> None:
    """The class takes the argument at this commit: the file that is missing stays the reason."""
    call = "net = Net(rows, depth=2)"
    source = f"from net import Net\nrows = open('data/rows.csv').read()\n{call}\n"
    files = {"main.py": source, "net.py": NET.replace("width)", "width, depth)")}
    report = reproduced(tmp_path, files, refusal(3, call))
    assert report.verdict.kind == "needs_info"
    assert "data/rows.csv" in report.verdict.reason


LATER = "open('data/rows.csv')\n"


def trace(file: str, line: int, code: str, error: str) -> str:
    return (
        "`python main.py`\n\n```\nTraceback (most recent call last):\n"
        f'  File "{file}", line {line}, in <module>\n    {code}\n{error}\n```\n'
    )


@pytest.mark.parametrize(
    ("source", "body", "words"),
    [
        ("from parts import go\n", trace("main.py", 1, "from parts import go", "ImportError: cannot import name 'go'"), "`from parts import go`"),
        ("import importlib.util\n", trace("main.py", 1, "import importlib.util", "ImportError: No module named util"), "Python 2"),
        ("size = 1\nprint(size)\n", trace("main.py", 2, "print(size)", "NameError: name 'size' is not defined"), "`print(size)`"),
        ("print(f'{1}')\n", trace("main.py", 1, "print(f'{1}')", "SyntaxError: invalid syntax"), "unable to read"),
    ],
)  # fmt: skip
def test_what_code_alone_decides_is_refuted_by_a_run_that_goes_past_it(
    tmp_path: Path, source: str, body: str, words: str
) -> None:
    report = reproduced(tmp_path, {"main.py": source + LATER}, body, reaches=False)
    assert report.verdict.kind == "not_reproduced", report.verdict
    assert words in report.verdict.reason
    assert report.verdict.failures == 0 < report.verdict.runs
    assert any("data/rows.csv" in row for row in report.verdict.checked)


@pytest.mark.parametrize(
    ("source", "body"),
    [
        # What comes before it ends the program.
        (LATER + "from parts import go\n", trace("main.py", 2, "from parts import go", "ImportError: cannot import name 'go'")),
        # The line is not that of the report.
        ("from parts import go\n" + LATER, trace("main.py", 1, "from parts import stay", "ImportError: cannot import name 'stay'")),
        # Another package may lack it in another release.
        ("import email.utils\nfrom json import dumps as pandas\n" + LATER, trace("main.py", 2, "import pandas.plotting", "ImportError: No module named plotting")),
        # The value decides.
        ("rows = []\nprint(len(rows))\n" + LATER, trace("main.py", 2, "print(len(rows))", "TypeError: object has no len")),
    ],
)  # fmt: skip
def test_what_more_than_code_decides_is_not_refuted_so(
    tmp_path: Path, source: str, body: str
) -> None:
    report = reproduced(tmp_path, {"main.py": source}, body, reaches=False)
    assert report.verdict.kind != "not_reproduced", report.verdict


def test_an_import_that_works_with_help_of_ours_is_not_refuted(tmp_path: Path) -> None:
    source = "from tools import go\n" + LATER
    body = trace("main.py", 1, "from tools import go", "ImportError: cannot import name 'go'")
    files = {"main.py": source, "lib/tools.py": "def go(): ...\n"}
    report = reproduced(tmp_path, files, body, reaches=False)
    assert report.script is not None
    assert any("on the path" in fix.what for fix in report.script.fixes)
    assert report.verdict.kind != "not_reproduced", report.verdict


def test_other_arguments_than_the_reporters_refute_nothing_in_a_block(tmp_path: Path) -> None:
    source = "import sys\nif len(sys.argv) < 2:\n    size = 1\n    print(size)\n" + LATER
    body = trace("main.py", 4, "print(size)", "NameError: name 'size' is not defined")
    body = body.partition("\n")[2]
    report = reproduced(tmp_path, {"main.py": source}, body)
    assert report.verdict.kind != "not_reproduced", report.verdict


def test_a_line_that_the_report_links_is_run_where_it_has_no_program(tmp_path: Path) -> None:
    files = {"nets/deep.py": "class Deep:\n    def make(self, size):\n        return Layer(size)\n"}
    body = (
        "NameError: name 'Layer' is not defined\n\n"
        "https://github.com/acme/acme/blob/main/nets/deep.py#L3\n"
    )
    report = reproduced(tmp_path, files, body)
    assert report.verdict.kind == "reproduced", report.verdict
    files["nets/deep.py"] += "class Layer: ...\n"
    report = reproduced(tmp_path / "other", files, body)
    assert report.verdict.kind == "inconclusive", report.verdict


def test_a_console_script_is_started_with_the_arguments_of_the_report(tmp_path: Path) -> None:
    files = {
        "setup.py": "setup(entry_points={'console_scripts': ['acme-go = acme.main:start']})\n",
        "src/acme/__init__.py": "",
        "src/acme/main.py": "import sys\nfrom parts import go\n\ndef start():\n"
        "    assert sys.argv == ['acme-go', '--rows', '0'], sys.argv\n    go([])\n",
    }
    trace = TRACE.replace("/home/me/acme/main.py", "/home/me/env/bin/acme-go")
    report = reproduced(tmp_path, files, f"```\n$ acme-go --rows 0\n```\n{trace}")
    assert report.verdict.kind == "reproduced", report.verdict


@pytest.mark.parametrize(("days", "kind"), [(0, "reproduced"), (3, "reproduced"), (30, "other")])
def test_a_module_that_was_added_shortly_before_the_report_was_missing(
    tmp_path: Path, days: int, kind: str
) -> None:
    files = {"sub/main.py": "from layers.deep import x\nprint(x)\n"}
    layers = {"sub/layers/deep.py": "x = 1\n", "sub/layers/__init__.py": ""}
    old = {f"{BEFORE}/{path}": text for path, text in files.items()}
    moment = datetime.combine(DAY, time(6), UTC) - timedelta(days=days)
    commits = FakeCommits(
        (
            Commit(id=BEFORE, date=moment - timedelta(days=9), subject="main"),
            Commit(id=HEAD, date=moment, subject="layers"),
        ),
        files={BEFORE: files, HEAD: {**files, **layers}},
    )
    trace = (
        '```\nTraceback (most recent call last):\n  File "sub/main.py", line 1, in <module>\n'
        "    from layers.deep import x\nModuleNotFoundError: No module named 'layers'\n```\n"
    )
    report = reproduced(tmp_path, {**files, **layers, **old}, trace, commits=commits)
    assert (report.verdict.kind == "reproduced") is (kind == "reproduced"), report.verdict
    notes = [note.text for note in report.notes]
    moved = f"not observed at commit {HEAD[:12]}, but at {BEFORE[:12]}" in notes
    assert moved is (kind == "reproduced")
