"""How an interpreter words its errors tells its version."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.environment import specify, versions
from bot.environment.versions import Range
from bot.issues.reading import issue
from bot.kernel.bug import BugReport, Issue, ReportKind, Traceback
from bot.kernel.environment import Environment, Package, PinSource
from tests.support.jobs import job_options

DAY = datetime(2023, 6, 1, tzinfo=UTC)


def report(message: str, exception: str = "TypeError") -> BugReport:
    return BugReport(
        kind=ReportKind.BUG, tracebacks=(Traceback(exception=exception, message=message),)
    )


@pytest.mark.parametrize(
    ("message", "oldest", "newest"),
    [
        ("__init__() got an unexpected keyword argument 'x'", 6, 9),
        ("Net.__init__() got an unexpected keyword argument 'x'", 10, 99),
        ("__init__() takes from 1 to 2 positional arguments but 3 were given", 6, 9),
        ("__init__() takes exactly 1 argument (2 given)", 6, 99),
        ("forward() missing 1 required positional argument: 'x'", 6, 99),
        ("fit() got an unexpected keyword argument 'x'", 6, 99),
        ("local variable 'x' referenced before assignment", 6, 10),
        ("cannot access local variable 'x' where it is not associated with a value", 11, 99),
        ("property 'x' of 'Net' object has no setter", 11, 99),
        ("Can't instantiate abstract class Net with abstract methods a, b", 6, 11),
        ("Can't instantiate abstract class Net without an implementation for abstract method 'a'", 12, 99),
        ("'Net' object has no attribute 'fitt'. Did you mean: 'fit'?", 10, 99),
        ("mat1 and mat2 shapes cannot be multiplied", 6, 99),
    ],
)  # fmt: skip
def test_the_versions_that_word_an_error_so(message: str, oldest: int, newest: int) -> None:
    assert versions.possible(report(message)) == Range(oldest, newest)


MARKED = """```
Traceback (most recent call last):
  File "a.py", line 2, in <module>
    acme.fit(x)
    ~~~~~~~~^^^
ValueError: no
```
"""
UNREADABLE = """```
Traceback (most recent call last):
  File "a.py", line 2
    acme.fit(x
            ^
SyntaxError: '(' was never closed
```
"""


@pytest.mark.parametrize(("body", "oldest"), [(MARKED, 11), (UNREADABLE, 6)])
def test_marks_below_the_lines_of_a_traceback(body: str, oldest: int) -> None:
    read = issue.read_issue(Issue(title="It fails", body=f"It fails:\n\n{body}", created_at=DAY))
    assert versions.possible(read).oldest == oldest


@pytest.mark.parametrize(
    ("found", "minor", "nearest"),
    [
        (Range(), "3.11", "3.11"),
        (Range(oldest=12), "3.11", "3.12"),
        (Range(newest=9), "3.11", "3.9"),
        (Range(oldest=12, newest=9), "3.11", "3.11"),
    ],
)
def test_the_nearest_version_of_a_range(found: Range, minor: str, nearest: str) -> None:
    assert found.nearest(minor) == nearest


OLD = report("__init__() got an unexpected keyword argument 'x'")


def test_without_a_version_the_wording_narrows_the_usual_python() -> None:
    found = specify.specify(
        OLD, Issue(title="t", body="b", created_at=DAY), job_options().environment, ""
    )
    assert found.python == "3.9"


def test_another_python_is_tried_where_the_wording_fits_none_that_was_built() -> None:
    subject = Issue(title="t", body="b", repository="acme/acmelib", created_at=DAY)
    spec = specify.specify(OLD, subject, job_options().environment, "import acmelib")
    package = Package(name="acmelib", version="1.0", rung=PinSource.DATE)
    built = Environment(id="e", python="3.11.4", interpreter="python3", packages=(package,))
    assert specify.alternatives(spec, OLD, subject, built)[0].python == "3.9"
    fitting = built.model_copy(update={"python": "3.9.1"})
    assert all(
        each == spec.python
        for each in (one.python for one in specify.alternatives(spec, OLD, subject, fitting))
    )
    asked = specify.specify(OLD, subject, job_options(python="3.11").environment, "import acmelib")
    assert {each.python for each in specify.alternatives(asked, OLD, subject, built)} == {"3.11"}
