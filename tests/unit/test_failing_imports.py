"""An import of which a report says in words that it fails: what counts, and what is run for it."""

import pytest

from bot.issues.judge import judge
from bot.issues.reading.issue import read_issue
from bot.issues.signature.freeze import freeze
from bot.kernel import tree_programs
from bot.kernel.attempt import Failure, Match, Script
from bot.kernel.bug import CrashSignature, Issue, members_of
from bot.kernel.tree_programs import GUESSED
from tests.unit.test_judge import seen

TREE = {
    "fit.py": b"import os\nfrom utils import load, save\n",
    "tools/score.py": b"from utils import load, save, plot\n",
    "lib/__init__.py": b"",
    "lib/core.py": b"from .parts import part\n",
    "lib/parts.py": b"",
    "utils.py": b"def load(): pass\n",
    "extra/shapes.py": b"",
}


def failures(body):
    signature = freeze(read_issue(Issue(title="Help", body=body)))
    return [(one.exception, one.message) for one in (members_of(signature) if signature else ())]


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("`from utils import save` gives an import error.", [("ImportError", "cannot import name 'save' from 'utils'")]),
        ("The line from utils import load, save fails. Why?",
         [("ImportError", "cannot import name 'load' from 'utils'"), ("ImportError", "cannot import name 'save' from 'utils'")]),
        ("See `from .parts import part`. I can't see it in the file.", [("ImportError", "cannot import name 'part'")]),
        ("`import lib.old` fails with an import error", [("ModuleNotFoundError", "No module named 'lib.old'")]),
        ("from lib.core import Part: it does not exist in the file",
         [("ImportError", "cannot import name 'Part' from 'lib.core'"), ("ModuleNotFoundError", "No module named 'lib.core'")]),
        ("```python\nfrom utils import save\n```\n\nI cannot find `save` in utils.py.",
         [("ImportError", "cannot import name 'save' from 'utils'")]),
    ],
)  # fmt: skip
def test_the_names_of_an_import_that_fails_are_the_failure(body, rows):
    assert failures(body) == rows


@pytest.mark.parametrize(
    "body",
    [
        "Use `from utils import save` instead, the old one fails.",
        "`from utils import save` is at the top of the file.",
        "I wrote `from errors import fail`.",
        "`import torch` fails",
        "It should be `from lib import save`, then nothing is missing.",
    ],
)
def test_an_import_that_is_no_complaint_counts_for_nothing(body):
    assert failures(body) == []


def test_the_error_of_the_report_goes_before_its_words():
    body = "`from utils import save` fails:\n\n```\nImportError: cannot import name 'old' from 'utils'\n```"
    assert failures(body) == [("ImportError", "cannot import name 'old' from 'utils'")]


@pytest.mark.parametrize(
    ("body", "command", "folder"),
    [
        ("`from utils import load, save` fails", ("fit.py",), ""),
        ("In score.py, `from utils import load, save` fails", ("tools/score.py",), ""),
        ("`from .parts import part` fails", ("-m", "lib.core"), ""),
        ("`from utils import absent` fails", ("reprise_import.py",), ""),
        ("`from shapes import absent` fails", ("reprise_import.py",), "extra"),
        ("`from utils import absent` in tools/score.py fails", ("reprise_import.py",), "tools"),
    ],
)
def test_the_file_that_has_the_statement_is_started_else_the_statement_beside_it(
    body, command, folder
):
    bug = read_issue(Issue(title="Help", body=body))
    script = tree_programs.propose(tree_programs.commands(bug), TREE)[0]
    assert (script.command, script.folder) == (command, folder)
    assert [fix.why for fix in script.fixes] == [GUESSED]


@pytest.mark.parametrize("module", ["elsewhere", ".absent"])
def test_a_statement_that_belongs_nowhere_is_not_run(module):
    bug = read_issue(Issue(title="Help", body=f"`from {module} import x` fails"))
    assert tree_programs.propose(tree_programs.commands(bug), TREE) == ()


WANTED = CrashSignature(exception="ImportError", message="cannot import name 'save' from 'utils'")
PROGRAM = Script(files={"fit.py": ""}, entry="fit.py", command=("fit.py",))


@pytest.mark.parametrize(
    ("exception", "message", "match"),
    [
        ("ImportError", "cannot import name 'save' from 'utils' (/repro/utils.py)", Match.MATCHED),
        ("ImportError", "cannot import name 'save' from partially initialized module 'utils' (most likely due to a circular import) (/repro/utils.py)", Match.MATCHED),
        ("ImportError", "cannot import name 'plot' from 'utils' (/repro/utils.py)", Match.OTHER),
        ("ImportError", "cannot import name 'save' from 'torch' (/e/torch.py)", Match.OTHER),
        ("ModuleNotFoundError", "No module named 'utils'", Match.SETUP_FAILURE),
        ("ModuleNotFoundError", "No module named 'numpy'", Match.SETUP_FAILURE),
    ],
)  # fmt: skip
def test_only_the_very_name_counts_and_a_package_that_is_not_installed_never(
    exception, message, match
):
    bases = (exception, "ImportError", "Exception")
    run = seen(Failure(exception=exception, message=message, bases=bases))
    assert judge(run, WANTED, PROGRAM).match is match
