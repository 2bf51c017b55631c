"""Regression tests that Reprise writes: run with real pytest and unittest in small projects, before
and after the bug is fixed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.issues.proposal import writing
from bot.issues.proposal.propose import of_repair, propose
from bot.kernel import files, files as kernel_files
from bot.kernel.attempt import Attempt, Execution, Failure, Judgement, Match, Script
from bot.kernel.bug import (
    AnySignature,
    CrashSignature,
    Frame,
    HangSignature,
    Issue,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    Predicate,
    WarningSignature,
)
from bot.kernel.errors import UserError
from bot.kernel.report import IssueReport, Reproduced
from bot.kernel.run import FileChange, RepositoryPatch
from bot.kernel.training_types import Edit, Improvement, Metric, Repair
from bot.report.pull_request import body
from bot.report.report_json import repair_text
from bot.report.run_folder import STATE

BROKEN = "def mean(rows):\n    return sum(rows) / len(rows)\n"
FIXED = "def mean(rows):\n    return sum(rows) / max(len(rows), 1)\n"
PROGRAM = "from lib import stats\n\nprint(stats.mean([]))\n"
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----"
ZERO = Failure(
    exception="ZeroDivisionError",
    message="division by zero",
    bases=("ArithmeticError", "Exception"),
    frames=(Frame(path="/x/lib/stats.py", package="lib", module_path="lib/stats.py"),),
)
CRASH = CrashSignature(exception="ZeroDivisionError", message="division by zero")


def report(
    program: str | dict[str, str] = PROGRAM,
    signature: AnySignature = CRASH,
    number: int | None = 12,
    determinism: str = "deterministic",
    **judged: object,
) -> IssueReport:
    """A reproduced report whose runs matched the signature."""
    files = program if isinstance(program, dict) else {"repro.py": program}
    script = Script(files=files)
    failure = ZERO if isinstance(signature, CrashSignature) else None
    judgement = Judgement(**{"match": Match.MATCHED, "reason": "", "failure": failure, **judged})
    attempt = Attempt(
        number=1,
        purpose="confirm",
        script=script.digest,
        origin="",
        environment="e",
        execution=Execution(exit_code=1, seconds=1.0),
        judgement=judgement,
    )
    verdict = Reproduced(
        runs=2, failures=2, interval=(0.2, 1.0), reason="", determinism=determinism
    )
    issue = Issue(title="mean fails", body="", repository="acme/lib", number=number)
    return IssueReport(
        issue=issue, verdict=verdict, signature=signature, script=script, attempts=(attempt,)
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package with pytest tests."""
    return made(
        tmp_path,
        {
            "lib/__init__.py": "",
            "lib/stats.py": BROKEN,
            "tests/test_other.py": "def test_other():\n    assert True\n",
            "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
        },
    )


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def runs_tests(folder: Path, *argv: str) -> tuple[int, str]:
    """The project's own test command; nothing of ours is on its path."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # ours, which take longer than the test
    }
    argv = argv or ("-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider")
    done = subprocess.run(
        (sys.executable, *argv), cwd=folder, env=environ, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def into(folder: Path, found: IssueReport, patch: RepositoryPatch | None = None):
    proposal = propose(found, kernel_files.open_checkout(folder), patch)
    kernel_files.put_files(folder, proposal.files)
    return proposal


def test_a_test_fails_for_the_reported_reason_until_the_bug_is_fixed(project):
    proposal = into(project, report())
    assert proposal.test.path == "tests/test_issue_12.py"
    code, said = runs_tests(project)
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    (project / "lib/stats.py").write_text(FIXED)
    code, said = runs_tests(project)
    assert code == 1
    assert "[XPASS(strict)] #12" in said
    (project / "lib/stats.py").write_text("def mean(rows):\n    raise KeyError\n")
    code, said = runs_tests(project)
    assert (code, "1 failed" in said) == (1, True), "another failure is not the expected one"


def test_the_same_diff_is_what_git_applies(project):
    proposal = propose(report(), kernel_files.open_checkout(project))
    subprocess.run(("git", "init", "-q"), cwd=project, check=True)
    subprocess.run(
        ("git", "apply", "--check", "-"), cwd=project, input=proposal.diff, text=True, check=True
    )
    subprocess.run(("git", "apply", "-"), cwd=project, input=proposal.diff, text=True, check=True)
    assert (project / proposal.test.path).read_text() == proposal.files[0].text


def test_asking_again_replaces_our_test_and_nobody_elses(project):
    first = into(project, report())
    again = into(project, report("import lib.stats\n\nlib.stats.mean([])\n"))
    assert (first.test.path, again.diff.count("+++ b/")) == (again.test.path, 1)
    assert "\n-" in again.diff
    (project / first.test.path).write_text("def test_theirs():\n    pass\n")
    other = into(project, report())
    assert other.test.path == "tests/test_issue_12_reprise.py"
    assert "theirs" in (project / first.test.path).read_text()


def test_unittest_where_the_project_uses_it(tmp_path):
    project = made(
        tmp_path,
        {
            "lib/__init__.py": "",
            "lib/stats.py": BROKEN,
            "tests/__init__.py": "",
            "tests/test_a.py": "import unittest\n\n\nclass A(unittest.TestCase):\n"
            "    def test_a(self):\n        pass\n",
        },
    )
    proposal = into(project, report())
    assert proposal.test.command == "python -m unittest tests/test_issue_12.py"
    code, said = runs_tests(project, "-m", "unittest", "-v")
    assert (code, "expected failures=1" in said) == (0, True), said
    assert "Ran 2 tests" in said
    (project / "lib/stats.py").write_text(FIXED)
    code, said = runs_tests(project, "-m", "unittest")
    assert (code, "unexpected success" in said) == (1, True)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"test/unit/a_test.py": "", "test/unit/b_test.py": ""}, "test/unit/issue_12_test.py"),
        ({"lib/tests/test_a.py": "", "lib/__init__.py": ""}, "lib/tests/test_issue_12.py"),
        ({"tests/a/test_x.py": "", "tests/b/test_stats.py": ""}, "tests/b/test_issue_12.py"),
        ({"test_all.py": ""}, "test_issue_12.py"),
        ({}, "tests/test_issue_12.py"),
        ({"third_party/tests/test_x.py": "", ".hidden/test_y.py": ""}, "tests/test_issue_12.py"),
        ({"examples/test_x.py": "", "spec/test_y.py": ""}, "spec/test_issue_12.py"),
        (
            {"pytest.ini": "[pytest]\ntestpaths = checks\npython_files = check_*.py\n"},
            "checks/check_issue_12.py",
        ),
        (
            {"tox.ini": "[pytest]\npython_files = t_*.py\n", "t/t_one.py": ""},
            "t/t_issue_12.py",
        ),
        (
            {
                "setup.cfg": "[tool:pytest]\ntestpaths = new\n",
                "new/test_a.py": "",
                "old/test_a.py": "",
                "old/test_b.py": "",
            },
            "new/test_issue_12.py",
        ),
    ],
)
def test_it_is_where_the_project_keeps_its_tests(tmp_path, files, expected):
    assert (
        propose(report(), kernel_files.open_checkout(made(tmp_path, files))).test.path == expected
    )


def test_functions_are_named_as_the_project_finds_them(tmp_path):
    ini = "[pytest]\npythonpath = .\npython_functions = check_*\n"
    project = made(tmp_path, {"lib/stats.py": BROKEN, "pytest.ini": ini})
    into(project, report())
    assert "1 xfailed" in runs_tests(project)[1]


MODULE = """\
import pickle

from lib import stats

TEXT = '''
    kept
as it is'''


class Row:
    def __init__(self):
        self.rows = []


if __name__ == "__main__":
    assert TEXT.startswith("\\n    kept\\nas")
    stats.mean(pickle.loads(pickle.dumps(Row())).rows)
"""
STAR = "from lib.stats import *\n\nmean([])\n"
STRINGS = """\
from lib import stats

TEXT = '''
    kept
as it is'''
if TEXT == "\\n    kept\\nas it is":
    stats.mean([])
"""


@pytest.mark.parametrize(
    ("program", "beside"),
    [
        (STRINGS, 0),
        (MODULE, 1),
        (STAR, 1),
        ("from lib import stats\n\nsum = 3\nstats.mean([])\n", 1),
        ({"repro.py": "import helper\n\nhelper.go()\n", "helper.py": "from lib import stats\n\n\ndef go():\n    stats.mean([])\n"}, 2),
    ],
    ids=["strings", "module", "star", "shadow", "files"],
)  # fmt: skip
def test_a_program_does_the_same_as_a_test(project, program, beside):
    proposal = into(project, report(program))
    assert len(proposal.files) == 1 + beside
    code, said = runs_tests(project)
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    (project / "lib/stats.py").write_text(FIXED)
    assert "XPASS(strict)" in runs_tests(project)[1]


SEVERAL = {
    "repro.py": "import conf\nimport data_test\nimport pkg.test_inner\nimport test_data\n\n"
    "assert conf.load() == 'rows'\ntest_data.test_go(data_test.ROWS)\n",
    "conf.py": 'from pathlib import Path\n\n\ndef load():\n    """\n    >>> 1\n    2\n    """\n'
    "    return Path(__file__).with_name('test_rows.txt').read_text().split()[-1]\n",
    "check_rows.py": "def check_rows():\n    raise KeyError\n",
    "data_test.py": "ROWS = []\n\n\ndef test_rows():\n    raise KeyError\n",
    "test_data.py": "from lib import stats\n\n\ndef test_go(rows):\n    stats.mean(rows)\n",
    "pkg/__init__.py": "NAME = 'pkg'\n",
    "pkg/test_inner.py": "from . import NAME\n\n\ndef test_name():\n    assert NAME == 'other'\n",
    "test_rows.txt": ">>> 1\n2\nrows\n",
}
OWN = "def test_other():\n    assert True\n"
CONFIGURED = {
    "none": {"conftest.py": ""},
    "pyproject": {"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests']\n"},
    "every module": {"pytest.ini": "[pytest]\npython_files = *.py\n"},
    "every module there": {"tox.ini": "[pytest]\npython_files = tests/*.py\ntestpaths = tests\n"},
    "other names": {
        "setup.cfg": "[tool:pytest]\npython_files = check_*.py\npython_functions = check_*\n",
        "tests/check_other.py": OWN.replace("test_other", "check_other"),
    },
    "every folder": {"pytest.ini": "[pytest]\nnorecursedirs = nothing\npython_files = t*.py d*.py\n"},
    "doctests": {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules --doctest-glob=*.txt --doctest-glob=*.rst\n"
    },
    "doctests in TOML": {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--doctest-modules']\n"
    },
    "pytest 9": {"pytest.toml": "[pytest]\npython_files = ['*.py']\ntestpaths = ['tests']\n"},
}  # fmt: skip


@pytest.mark.parametrize("program", [SEVERAL, STAR], ids=["several", "star"])
@pytest.mark.parametrize("config", CONFIGURED)
def test_a_projects_own_run_collects_nothing_but_the_test(tmp_path, config, program):
    files = {"conftest.py": "", "tests/test_other.py": OWN, **CONFIGURED[config]}
    project = made(tmp_path, {"lib/__init__.py": "", "lib/stats.py": BROKEN, **files})
    proposal = into(project, report(program))
    code, said = runs_tests(project, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider")
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    code, said = runs_tests(
        project, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"
    )
    collected = {line.partition("::")[0] for line in said.splitlines() if "::" in line}
    assert proposal.test.path in collected
    assert len(collected) == 2, said
    (project / "lib/stats.py").write_text(FIXED)
    assert "[XPASS(strict)] #12" in runs_tests(project)[1]


def test_unittest_discovers_nothing_but_the_test(tmp_path):
    own = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"
    library = {"lib/__init__.py": "", "lib/stats.py": BROKEN}
    project = made(tmp_path, {**library, "tests/__init__.py": "", "tests/test_a.py": own})
    into(project, report({**SEVERAL, "__init__.py": ""}))
    for pattern in ("test*.py", "*.py"):
        argv = ("-m", "unittest", "discover", "-v", "-t", ".", "-s", "tests", "-p", pattern)
        code, said = runs_tests(project, *argv)
        assert (code, "expected failures=1" in said, "Ran 2 tests" in said) == (0, True, True), said


@pytest.mark.parametrize(
    "name",
    [
        "conftest.py", "sub/conftest.py", "Conftest.py", "setup.py", "pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml",
        "noxfile.py", "sitecustomize.py", "requirements.txt", ".pytest.ini", ".github/workflows/ci.yml", "uv.lock", "Makefile", "../test_x.py",
    ],
)  # fmt: skip
def test_files_that_configure_something_are_never_added(project, name):
    with pytest.raises(
        UserError,
        match=r"The test .* (configures|is in a hidden|is a lock|is no p)|file name of unusual characters",
    ):
        propose(report({**SEVERAL, name: ""}), kernel_files.open_checkout(project))


def test_no_file_of_a_program_has_a_name_that_means_something(project):
    test, *others = into(project, report(SEVERAL)).files
    assert len(others) == len(SEVERAL)
    assert {Path(file.path).suffix for file in others} == {".source"}
    assert "issue_12_program" in test.text


VALUE = ObservationSignature(
    name="mean",
    says="the mean is wrong",
    wrong=Predicate(op="==", value=2.0),
    right=Predicate(op="==", value=1.5),
    api=("lib.stats.mean",),
)


@pytest.mark.parametrize(
    ("signature", "program", "wrong", "judged"),
    [
        (VALUE, "import json\n\nfrom lib import stats\n\nprint('REPRISE', json.dumps({'mean': stats.mean([1, 2])}))\n", "2.0", {}),
        (NonFiniteSignature(values=("nan",)), "from lib import stats\n\nprint(stats.mean([1, 2]))\n", "float('nan')", {}),
        (OutputSignature(observed=(("mean 7",),)), "from lib import stats\n\nprint('mean', stats.mean([1, 2]))\n", "7", {"evidence": "mean 7"}),
        (WarningSignature(category="UserWarning", message="empty rows"), "from lib import stats\n\nstats.mean([1, 2])\n", "__import__('warnings').warn('empty rows are odd')", {"evidence": "/x/stats.py:2: UserWarning: empty rows are odd"}),
        (CRASH, "from lib import stats\n\ntry:\n    stats.mean([1, 2])\nexcept ValueError as error:\n    print('caught', error)\n", "int('x')", {"failure": Failure(exception="ValueError", message="invalid literal for int() with base 10: 'x'", swallowed=True)}),
    ],
    ids=["value", "nan", "output", "warning", "caught"],
)  # fmt: skip
def test_silent_failures_are_checked_too(project, signature, program, wrong, judged):
    (project / "lib/stats.py").write_text(f"def mean(rows):\n    return {wrong}\n")
    into(project, report(program, signature, **judged))
    code, said = runs_tests(project)
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    (project / "lib/stats.py").write_text(FIXED)
    assert "XPASS(strict)" in runs_tests(project)[1]


@pytest.mark.parametrize(
    ("program", "beside"),
    [
        ("from lib import stats\n\nout = output = values = stats.mean([1, 2])\nprint(out)\n", 0),
        ("import io\nimport re\n\nfrom lib import stats\n\nprint(stats.mean([1, 2]))\n", 1),
        ("import re\n\nfrom lib import stats\n\nprint(stats.mean([1, 2]))\n", 0),
        ("from lib import stats\n\nre = stats.mean([1, 2])\nprint(re)\n", 1),
    ],
)
def test_names_of_the_program_do_not_meet_those_of_the_test(project, program, beside):
    (project / "lib/stats.py").write_text("def mean(rows):\n    return float('nan')\n")
    proposal = into(project, report(program, NonFiniteSignature(values=("nan",))))
    assert len(proposal.files) == 1 + beside
    code, said = runs_tests(project)
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    (project / "lib/stats.py").write_text(FIXED)
    assert "XPASS(strict)" in runs_tests(project)[1]


def test_a_failure_that_varies_is_not_strict(project):
    proposal = into(project, report(determinism="nondeterministic"))
    (project / "lib/stats.py").write_text(FIXED)
    assert (proposal.test.strict, runs_tests(project)[0]) == (False, 0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (report(signature=HangSignature(bound_s=5)), "cannot be a test that ends"),
        (report("print('a\u202eb')\n"), "`repro.py`, line 1: invisible characters"),
        (report("x = 1\nkey = 'ghp_" + "a" * 36 + "'\n"), "line 2: what looks like a credential"),
        (report(f"x = 1\n# {PEM}\nsteal()\n"), "lines 2 to 3: what looks like a credential"),
        (report("x = 1\n# hunter2hunter2\n"), "line 2: what looks like a credential"),
        (report({"repro.py": "import m\n", "m.py": "\u200b\n"}), "`m.py`, line 1: invisible"),
        (report(PROGRAM + "# " + "x" * files.MOST_TEST), "too long to review"),
    ],
    ids=["hang", "invisible", "secret", "key", "host", "second file", "long"],
)
def test_what_cannot_be_a_test_says_so(project, found, words):
    with pytest.raises(UserError, match=words) as told:
        propose(found, kernel_files.open_checkout(project), secrets=["hunter2hunter2"])
    assert "hunter2" not in str(told.value)


def test_blank_lines_around_a_program_and_line_ends_of_windows_are_no_obstacle(project):
    into(project, report("\n" + PROGRAM.replace("\n", "\r\n") + "\n\n"))
    assert runs_tests(project)[0] == 0


def test_a_line_that_a_change_adds_has_to_be_readable(project):
    """What the repository holds already is not ours to judge."""
    held = f"# {'ghp_' + 'a' * 36}\nlr: 10.0\n"
    made(project, {"base.yaml": held})
    propose(
        report(),
        kernel_files.open_checkout(project),
        change("base.yaml", held, held.replace("10", "1")),
    )
    hiding = held.replace("10.0", "1.0 # \u202e")
    with pytest.raises(UserError, match="adds a line that could not be reviewed"):
        propose(report(), kernel_files.open_checkout(project), change("base.yaml", held, hiding))


def test_words_of_the_report_stay_in_their_comment(project):
    message = 'x"""\n@pytest.fixture\rimport os; os.abort()\u2028#'
    failure = ZERO.model_copy(update={"message": message})
    proposal = into(project, report(failure=failure, number=None))
    assert proposal.test.path == "tests/test_reported_failure.py"
    code, said = runs_tests(project)
    assert (code, "1 xfailed" in said) == (0, True), said


def test_links_files_and_submodules_are_never_written_through(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    project = made(tmp_path / "project", {"lib/stats.py": BROKEN})
    (project / "tests").symlink_to(outside)
    assert into(project, report()).test.path == "test/test_issue_12.py"
    (project / "test/test_issue_12.py").unlink()
    (project / "test").rmdir()
    (project / "test").write_text("a file")
    with pytest.raises(UserError, match="no folder"):
        propose(report(), kernel_files.open_checkout(project))
    assert list(outside.iterdir()) == []


CONFIG = "lr: 10.0\nepochs: 3\n"


def change(path="train.py", before=CONFIG, after="lr: 0.1\nepochs: 3\n", diff=None):
    diff = files.unified(path, before, after) if diff is None else diff
    return RepositoryPatch(
        program="train.py", changes=(FileChange(path=path, text=after, diff=diff),)
    )


def test_a_change_of_the_projects_own_code_goes_with_the_test(project):
    made(project, {"conf/train.yaml": CONFIG})
    proposal = into(project, report(), change("conf/train.yaml"))
    assert (project / "conf/train.yaml").read_text() == "lr: 0.1\nepochs: 3\n"
    assert proposal.test.strict is False
    assert proposal.diff.count("diff --git") == 2


@pytest.mark.parametrize(
    ("path", "patch", "words"),
    [
        (".github/workflows/ci.yml", None, "hidden"),
        ("uv.lock", None, "lock file"),
        ("conda-lock.yml", None, "lock file"),
        ("setup.py", None, "builds, tests or CI"),
        ("requirements-dev.txt", None, "builds, tests or CI"),
        ("sub/pyproject.toml", None, "builds, tests or CI"),
        ("run.sh", None, "neither Python nor configuration"),
        ("../evil.py", None, "not a plain path"),
        ("a//b.py", None, "not a plain path"),
        ("gone.py", None, "not a text file"),
        ("lib/stats.py", change("lib/stats.py"), "does not apply"),
        ("lib/stats.py", change("lib/stats.py", diff="nothing"), "another file|not a unified diff"),
        ("lib/stats.py", change("lib/stats.py", BROKEN, FIXED, files.unified("lib/other.py", BROKEN, FIXED)), "another file"),
        ("lib/stats.py", change("lib/stats.py", BROKEN, FIXED + "import os\n", files.unified("lib/stats.py", BROKEN, FIXED)), "another text"),
    ],
)  # fmt: skip
def test_a_change_elsewhere_or_of_another_text_is_refused(project, path, patch, words):
    if not path.startswith("..") and "//" not in path and path != "gone.py":
        made(project, {} if (project / path).exists() else {path: CONFIG})
    with pytest.raises(UserError, match=words):
        propose(report(), kernel_files.open_checkout(project), patch or change(path))


def test_a_changed_file_without_a_last_line_end(project):
    made(project, {"train.py": "lr = 10\nx = 1"})
    proposal = propose(
        report(),
        kernel_files.open_checkout(project),
        change("train.py", "lr = 10\nx = 1", "lr = 1\nx = 1"),
    )
    subprocess.run(("git", "init", "-q"), cwd=project, check=True)
    subprocess.run(("git", "apply", "-"), cwd=project, input=proposal.diff, text=True, check=True)
    assert (project / "train.py").read_text() == "lr = 1\nx = 1"


@pytest.mark.parametrize(
    "source",
    [
        "global x\nx = 1\n",
        "print(__name__)\n",
        "from __future__ import annotations\n",
        "x = 1\n\n\nclass A:\n    x = x\n",
        "def f(:\n",
        "",
    ],
)
def test_programs_that_need_to_be_modules(source):
    assert writing.body(source, "    ") is None


def test_the_command_line_gives_the_same_without_an_app(project, tmp_path_factory):
    run = tmp_path_factory.mktemp("run")
    (run / STATE).write_text(report().model_dump_json())
    reprise = str(Path(sys.executable).with_name("reprise"))

    def asked(*argv: str):
        command = (reprise, "pr", str(run), "--into", *argv)
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    dry = asked(str(project), "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert not (project / "tests/test_issue_12.py").exists()
    done = asked(str(project))
    assert (done.returncode, "python -m pytest tests/test_issue_12.py" in done.stderr) == (0, True)
    text = (project / "tests/test_issue_12.py").read_text()
    assert [line[1:] for line in dry.stdout.splitlines() if line[:1] == "+"][
        1:
    ] == text.splitlines()
    nowhere = asked(str(project / "gone"))
    assert (nowhere.returncode, "There is no folder" in nowhere.stderr) == (2, True)


TRAIN = "import torch\n\nlr = 10.0\nepochs = 3\nprint('accuracy', lr * epochs)\n"


def found_repair(name: str = "repro.py") -> Repair:
    """A repair of the training program."""
    after = TRAIN.replace("10.0", "0.1")
    return Repair(
        metric=Metric(name="accuracy", direction="max", source="output"),
        patch=(
            Edit(parameter="learning_rate", kind="learning_rate", before="10.0", after="0.1", line=3),
        ),
        source=TRAIN,
        trainings=4,
        confirmations=6,
        diff=files.unified(name, TRAIN, after).partition("\n")[2],
        improvement=Improvement(
            before=(0.5, 0.52, None), after=(0.9, 0.92, 0.95), p=0.03125, effect=2.0, significant=True
        ),
        proven=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "name", "path"),
    [
        ({"src/train.py": TRAIN}, "repro.py", "src/train.py"),
        ({"src/train.py": TRAIN + "x = 1\n"}, "train.py", "src/train.py"),
        ({"src/train.py": "x = 1\n" + TRAIN}, "train.py", None),
        ({"a/train.py": TRAIN, "b/train.py": TRAIN}, "train.py", None),
        ({".github/train.py": TRAIN}, "train.py", None),
        ({}, "repro.py", None),
    ],
    ids=["same", "named", "moved", "two", "hidden", "none"],
)
def test_a_repair_of_a_file_of_the_project_is_a_change_of_it(project, files, name, path):
    made(project, files)
    if path is None:
        words = "Several files" if len(files) > 1 else "not a file of this repository"
        with pytest.raises(UserError, match=words):
            of_repair(found_repair(name), kernel_files.open_checkout(project))
        return
    patch = of_repair(found_repair(name), kernel_files.open_checkout(project))
    assert (patch.program, [each.path for each in patch.changes]) == (path, [path])
    into(project, report(), patch)
    assert "lr = 0.1\n" in (project / path).read_text()


@pytest.mark.parametrize("quoted", [TRAIN.rstrip("\n"), TRAIN + "\n"])
def test_a_quote_may_lose_or_win_the_last_line_end(project, quoted):
    made(project, {"src/train.py": TRAIN})
    found = found_repair().model_copy(update={"source": quoted})
    assert of_repair(found, kernel_files.open_checkout(project)).program == "src/train.py"


SETTINGS = "lr: 10.0  # as in the paper\nepochs: 3\n"


def configured_repair() -> Repair:
    """A repair of the program and of its configuration file."""
    config = files.unified("conf/base.yaml", SETTINGS, SETTINGS.replace("10.0", "0.1"))
    found = found_repair("train.py")
    return found.model_copy(update={"entry": "train.py", "diff": f"{found.diff}{config}"})


def test_a_repair_changes_the_configuration_beside_its_program(project):
    made(project, {"src/train.py": TRAIN, "src/conf/base.yaml": SETTINGS})
    made(project, {"old/train.py": TRAIN, "old/conf/base.yaml": "lr: 1.0\nepochs: 3\n"})
    files = kernel_files.open_checkout(project)
    patch = of_repair(configured_repair(), files)
    assert patch.program == "src/train.py"
    proposal = into(project, report(), patch)
    assert (project / "src/conf/base.yaml").read_text() == SETTINGS.replace("10.0", "0.1")
    assert (project / "old/train.py").read_text() == TRAIN
    asked = report().model_copy(update={"repair": configured_repair()})
    written = body(asked, proposal)
    assert "of `src/train.py` and `src/conf/base.yaml`" in written
    assert "`reprise repair src/train.py --metric accuracy`" in written
    assert "+lr: 0.1  # as in the paper" in written


def test_too_many_files_or_lines_are_not_proposed(project):
    names = [f"conf/{number}.yaml" for number in range(13)]
    made(project, dict.fromkeys(names, CONFIG))
    changes = [change(name).changes[0] for name in names]
    files = kernel_files.open_checkout(project)
    with pytest.raises(UserError, match="too many files"):
        propose(report(), files, RepositoryPatch(program="train.py", changes=tuple(changes)))
    before, after = ("".join(f"{at * n}\n" for n in range(150)) for at in (1, -1))
    made(project, {"a.yaml": before, "b.yaml": before})
    long = [change(name, before, after).changes[0] for name in ("a.yaml", "b.yaml")]
    with pytest.raises(UserError, match="too long to review"):
        propose(
            report(),
            kernel_files.open_checkout(project),
            RepositoryPatch(program="train.py", changes=tuple(long)),
        )


def test_a_configuration_alone_is_changed_only_beside_the_very_program(project):
    made(project, {"a/train.py": TRAIN, "a/conf/base.yaml": SETTINGS})
    made(project, {"b/train.py": "print(1)\n", "b/conf/base.yaml": SETTINGS})
    whole = configured_repair()
    found = whole.model_copy(update={"diff": files.files(whole.diff)[1][1]})
    patch = of_repair(found, kernel_files.open_checkout(project))
    assert [change.path for change in patch.changes] == ["a/conf/base.yaml"]
    kept = found.model_copy(update={"source": "", "source_sha": files.blob(TRAIN)})
    assert of_repair(kept, kernel_files.open_checkout(project)) == patch
    unknown = found.model_copy(update={"source": ""})
    with pytest.raises(UserError, match="not a file of this repository"):
        of_repair(unknown, kernel_files.open_checkout(project))


def test_files_lie_beside_the_program_as_they_did_where_it_was_repaired(project):
    made(project, {"lib/src/train.py": TRAIN, "lib/src/conf/base.yaml": SETTINGS})
    found = configured_repair()
    moved = found.diff.replace("conf/base.yaml", "src/conf/base.yaml")
    moved = moved.replace("a/train.py", "a/src/train.py").replace("b/train.py", "b/src/train.py")
    found = found.model_copy(update={"diff": moved, "entry": "src/train.py"})
    patch = of_repair(found, kernel_files.open_checkout(project))
    assert {change.path for change in patch.changes} == {
        "lib/src/train.py", "lib/src/conf/base.yaml",
    }  # fmt: skip


@pytest.mark.parametrize(
    "place", ["conf/../../base.yaml", ".github/base.yaml", "conf/missing.yaml"]
)
def test_a_repair_is_not_proposed_where_its_configuration_is_not(project, place):
    made(project, {"src/train.py": TRAIN, "base.yaml": SETTINGS, "src/.github/base.yaml": SETTINGS})
    found = configured_repair()
    found = found.model_copy(update={"diff": found.diff.replace("conf/base.yaml", place)})
    with pytest.raises(UserError, match="not a file of this repository"):
        of_repair(found, kernel_files.open_checkout(project))


def test_an_unproven_repair_is_no_change(project):
    made(project, {"train.py": TRAIN})
    found = found_repair("train.py").model_copy(update={"proven": False})
    with pytest.raises(UserError, match="not proven to help"):
        of_repair(found, kernel_files.open_checkout(project))


def test_a_change_goes_alone_where_there_can_be_no_test(project):
    made(project, {"train.py": TRAIN})
    files = kernel_files.open_checkout(project)
    hangs = report(signature=HangSignature(bound_s=5))
    proposal = propose(hangs, files, of_repair(found_repair(), files))
    assert (proposal.test, [file.path for file in proposal.files]) == (None, ["train.py"])
    assert "cannot be a test that ends" in proposal.left_out


def test_the_body_tells_the_figures_of_a_change_and_shows_it(project):
    made(project, {"train.py": TRAIN})
    files = kernel_files.open_checkout(project)
    patch = of_repair(found_repair(), files)
    issue = "Fixes #3 @everyone https://evil.example/x\n/approve <!-- reprise:run -->"
    asked = report(failure=ZERO.model_copy(update={"message": issue}))
    asked = asked.model_copy(update={"repair": found_repair()})
    written = body(asked, propose(asked, files, patch), pages=["https://r.example/runs/1"])
    assert "| learning rate | 10.0 | 0.1 | 3 | HLR |" in written
    assert (
        "| accuracy | 0.51 ± 0.014 (1 of 3 without a number) | 0.9233 ± 0.025 | 3 | 0.031 |"
        in written
    )
    assert "-lr = 10.0\n+lr = 0.1" in written
    assert "4 trainings for the search and 6 for the proof" in written
    assert "`reprise repair train.py --metric accuracy`" in written
    assert written.startswith("<!-- reprise:pr -->")
    for words in ("Fixes #3", "@everyone", "https://evil", "<!-- reprise:run"):
        assert words not in written


def test_the_command_line_takes_a_repair_along(project, tmp_path_factory):
    made(project, {"train.py": TRAIN})
    run, repaired = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("repair")
    (run / STATE).write_text(report().model_dump_json())
    text = repair_text(found_repair("train.py"), program="train.py", hide=str)
    (repaired / "repair.json").write_text(text)
    reprise = str(Path(sys.executable).with_name("reprise"))
    argv = (reprise, "pr", str(run), "--into", str(project), "--repair", str(repaired))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "lr = 0.1\n" in (project / "train.py").read_text()
