"""The commit that has the lines which a report's traceback quotes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search.commit_fit import fitting_commit, named_commit
from bot.kernel.bug import Commit, Issue
from bot.kernel.environment import RepoSource
from bot.kernel.session import Session
from tests.support.engine import FakeCommits
from tests.support.jobs import issue_job
from tests.unit.test_pipeline import world

TRAIN = "import sys\nfrom lib.model import build\nprint(build(5))\n"
MODELS = (
    "def build(size):\n    raise ValueError(size)\n",
    "import os\n\n\ndef build(size):\n    raise ValueError(size)\n",
    "import os\n\n\ndef build(size):\n    size += 1\n    raise ValueError(size)\n",
)
IDS = [f"{at:x}" * 40 for at in range(1, 6)]
COMMITS = tuple(
    Commit(id=name, date=datetime(2026, 1, 1 + at, tzinfo=UTC), subject=f"change {at}")
    for at, name in enumerate(IDS)
)
STATES = (MODELS[0], MODELS[1], MODELS[1], MODELS[2], MODELS[2])
HISTORY = FakeCommits(
    COMMITS,
    files={
        name: {"train.py": TRAIN, "lib/model.py": text}
        for name, text in zip(IDS, STATES, strict=True)
    },
)
SOURCE = RepoSource(url="", path="/clone")


def report(line, code="raise ValueError(size)", path="/home/me/clone/lib/model.py"):
    body = (
        "```\nTraceback (most recent call last):\n"
        '  File "/home/me/clone/train.py", line 3, in <module>\n    print(build(5))\n'
        f'  File "{path}", line {line}, in build\n    {code}\nValueError: 5\n```\n'
    )
    return Issue(title="It fails", body=body, repository="acme/clone")


def fit(issue, history=HISTORY):
    session = Session.begin(issue_job(issue), replace(world(None), commits=history))
    files = history.files[IDS[-1]] if history is not None else {}
    tree = {path: text.encode() for path, text in files.items()}
    return fitting_commit(session, read_issue(issue), SOURCE, IDS[-1], tree)


@pytest.mark.parametrize(("line", "place"), [(5, 2), (2, 0)])
def test_the_newest_commit_with_the_quoted_lines_is_taken(line, place):
    assert fit(report(line)) == COMMITS[place]


def test_the_commit_of_the_day_stays_where_none_has_more_of_the_lines():
    assert fit(report(6)) is None
    assert fit(report(9)) is None
    assert fit(report(5, code="raise ValueError(other)")) is None


def test_what_the_repository_does_not_have_is_not_compared():
    assert fit(report(5, path="/usr/lib/python3/site-packages/lib/model.py")) is None
    assert fit(report(5, path="/home/me/other.py")) is None
    assert fit(report(5), None) is None


@pytest.mark.parametrize(
    ("body", "is_named"),
    [
        ("* lib version: git 3a3b1c5d9", True),
        ("I am at commit `3a3b1c5d9` of master", True),
        ("revision 3a3b1c5d9, Python 3.6", True),
        ("It was introduced in commit 3a3b1c5d9", False),
        ("Fixed by commit 3a3b1c5d9?", False),
        ("version 20210403", False),
        ("commit 3a3b1c5d9 fails, commit 4a4b4c4d4 too", False),
        ("the file 3a3b1c5d9.bin is missing", False),
    ],
)
def test_a_commit_that_a_report_says_it_is_about_is_taken(body, is_named):
    known = Commit(id="3a3b1c5d9" + "0" * 31, date=datetime(2026, 1, 3, tzinfo=UTC), subject="x")
    history = FakeCommits((*COMMITS[:2], known), files={})
    issue = Issue(title="A test fails", body=body, created_at=datetime(2026, 1, 5, tzinfo=UTC))
    session = Session.begin(issue_job(issue), replace(world(None), commits=history))
    assert named_commit(session, SOURCE) == (known if is_named else None)


def test_a_commit_that_is_newer_than_the_report_is_not_what_it_is_about():
    history = FakeCommits(
        (Commit(id="3a3b1c5d9" + "0" * 31, date=datetime(2026, 1, 9, tzinfo=UTC)),), files={}
    )
    issue = Issue(title="x", body="commit 3a3b1c5d9", created_at=datetime(2026, 1, 5, tzinfo=UTC))
    session = Session.begin(issue_job(issue), replace(world(None), commits=history))
    assert named_commit(session, SOURCE) is None


def test_a_tag_with_the_form_of_an_id_is_not_the_commit_that_a_report_names():
    history = replace(FakeCommits(COMMITS[:2], files={}), tagged={"3a3b1c5d9": IDS[0]})
    issue = Issue(title="x", body="commit 3a3b1c5d9", created_at=datetime(2026, 1, 5, tzinfo=UTC))
    session = Session.begin(issue_job(issue), replace(world(None), commits=history))
    assert history.commit(SOURCE, "3a3b1c5d9") == COMMITS[0]
    assert named_commit(session, SOURCE) is None
