"""Which programs a report implies, seen from its text."""

import pytest

from bot.issues.reading import code, issue
from bot.issues.search import report_programs
from bot.issues.signature import freeze
from bot.kernel.bug import Issue, Role

ERROR = "\n```\nRuntimeError: expected 3 dims and received 2 of them\n```\n"


def scripts(body, title="It fails"):
    bug = issue.read_issue(Issue(title=title, body=body, repository="acme/lib"))
    frozen = freeze.freeze(bug)
    assert frozen is not None
    return report_programs.propose(bug, frozen)


def test_imports_are_borrowed_from_the_block_that_works():
    body = (
        "Works:\n\n```python\nfrom lib import Net\nprint(Net(dim=2).run())\n```\n\nDoes not:\n\n"
        "```python\nnet = Net(dim=3)\nnet.run()\n```\n" + ERROR
    )
    first = scripts(body)[0]
    assert first.source.startswith("from lib import Net\n")
    assert "dim=3" in first.source


def test_variables_of_the_command_are_set_in_the_script():
    body = (
        "```python\nfrom keras import ops\nops.tile(1, 2)\n```\n```console\n$ KERAS_BACKEND=torch python x.py\n```\n"
        + ERROR
    )
    first = scripts(body)[0]
    assert first.source.splitlines()[:2] == ["import os", "os.environ['KERAS_BACKEND'] = 'torch'"]
    assert any("KERAS_BACKEND" in fix.what for fix in first.fixes)


def test_variables_that_decide_programs_or_hosts_are_not_taken_over():
    text = 'PATH=/tmp/x LD_PRELOAD=x.so PYTHONPATH=. HTTP_PROXY=http://x HF_TOKEN=abc XLA_FLAGS="--a=b" python x.py'
    assert code.variables(text) == {"XLA_FLAGS": "--a=b"}


def test_a_transcript_that_nobody_fenced_is_a_program():
    body = (
        "The same call with another average goes through:\n\n>>> import lib\n>>> net = lib.Net(\n...     dim=3)\n>>> net.run()\n"
        'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\n'
        "RuntimeError: expected 3 dims and received 2 of them\n\nlib 1.0\n"
    )
    (first,) = scripts(body)
    assert "net = lib.Net(\n    dim=3)" in first.source


def test_a_threefold_quotation_is_no_program():
    bug = issue.read_issue(
        Issue(title="It fails", body=">>> I think that this is fine\n>> no\n\n" + ERROR)
    )
    assert not bug.programs


def test_commands_run_one_after_the_other():
    text = "$ python -c \"import lib; lib.save('w')\"\n$ python -c \"import lib; print(lib.load('w'))\"\n"
    found = code.program(text)
    assert found is not None
    assert found.text == "import lib; lib.save('w')\nimport lib; print(lib.load('w'))"


def test_a_command_before_a_traceback_is_run_though_it_prints_a_version():
    body = """`python -c "import lib; print(lib.info())"` prints:
```
lib version: 1.0
    install path: /usr/lib/python3/lib
```

`python -c "import lib; print(lib.__version__)"` prints:
```
Traceback (most recent call last):
  File "<string>", line 1, in <module>
AttributeError: module 'lib' has no attribute '__version__'
```
"""
    first, *_ = scripts(body)
    assert first.source == "import lib; print(lib.__version__)\n"


def test_a_block_that_prints_versions_is_no_program():
    body = """```python
import lib
print(lib.__version__)
```

```python
import lib
lib.go()
```

```
Traceback (most recent call last):
  File "a.py", line 2, in <module>
ValueError: no
```
"""
    assert [one.source for one in scripts(body)] == ["import lib\nlib.go()\n"]


FIXED = """The example fails:

```python
import torch
# a = torch.ones(3)
torch.linalg.solve(a)
```

with `RuntimeError: not a matrix`.

How it could be:

```python
import torch
a = torch.eye(3)
torch.linalg.solve(a)
```
{after}
"""


@pytest.mark.parametrize(
    "after",
    [
        "should solve the issue",
        "This fixes it.",
        "\nwould resolve my problem, I think.",
        "which then fixed the error",
    ],
)
def test_a_block_that_the_words_after_it_call_a_fix_is_not_the_failing_program(after):
    bug = issue.read_issue(Issue(title="solve fails", body=FIXED.format(after=after)))
    scripts = report_programs.propose(bug, freeze.freeze(bug))
    assert all("torch.eye" not in script.source for script in scripts)
    assert "\na = torch.ones(3)\n" in scripts[0].source
    assert any("restored" in fix.what for fix in scripts[0].fixes)


@pytest.mark.parametrize(
    "after", ["fails with the same error", "Fix this please.", "I solved nothing."]
)
def test_other_words_after_a_block_call_it_no_fix(after):
    bug = issue.read_issue(Issue(title="solve fails", body=FIXED.format(after=after)))
    assert bug.programs[-1].role is not Role.FIX
