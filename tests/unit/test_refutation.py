"""A report is refuted by runs of its own calls that show the right value, and by more than a
model's word that it is right.
"""

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search import refutation
from bot.kernel.bug import ObservationSignature, Predicate
from bot.kernel.dialogue import Interpretation, RefuteAction
from bot.kernel.environment import Claimed, Environment, Package, PinSource
from bot.report import terminal
from tests.support.fakes import FakeBuilder, ScriptedModel
from tests.support.source_index import FakeIndexer, FakeSourceIndex
from tests.unit.test_reconstruct import answers, decide, issue, says

SHOWN = """import acme
from acme.stats import spread

values = acme.array([1.0, 2.0, 4.0])
print(spread(values, ddof=0))
"""
REPORT = f"""`spread` divides by the wrong number: I get 1.5275 and expected 1.2472.

```python
{SHOWN}```
"""
PROGRAM = """import json
import acme
from acme import stats

x = acme.array([1.0, 2.0, 4.0])
print("REPRISE", json.dumps({"spread": stats.spread(x, ddof=0)}))
"""
REFERENCE = """import json
x = [1.0, 2.0, 4.0]
mean = sum(x) / len(x)
print("REPRISE", json.dumps({"spread": (sum((one - mean) ** 2 for one in x) / len(x)) ** 0.5}))
"""
DOCS = "With `ddof` 0 the population's spread is returned."
LONG = "x = 1\n" * 4_500
SOURCES = {
    "acme/stats.py": f'{LONG}def spread(x, ddof=1):\n    """{DOCS}"""\n    return x.std(ddof=ddof) * 1.0000\n'
}
READING = {
    "claim": "spread(ddof=0) divides by n - 1.", "kind": "observation", "sign_if_right": False, "needs": "",
    "api": ["acme.stats.spread"], "packages": ["acme"], "pins": [], "quotes": ["divides by the wrong number"],
    "crash": None, "warning": None, "training": None, "questions": [],
    "observation": {
        "name": "spread", "says": "spread of 1, 2, 4 with ddof 0",
        "wrong": {"op": "==", "value": 1.5275}, "right": {"op": "==", "value": 1.2472},
    },
}  # fmt: skip
RIGHT, WRONG = says('REPRISE {"spread": 1.2472}\n'), says('REPRISE {"spread": 1.5275}\n')
GIVE_UP = {"action": "give_up", "reason": "it is right", "questions": []}


def refute(**fields):
    row = {"program": PROGRAM, "contrast": "", "path": "acme/stats.py", "quote": DOCS}
    return {"action": "refute", **row, "reason": "ddof is 0", **fields}


def acts(*rows):
    return {"thought": "", "context": 0, "actions": list(rows)}


def outcome(*actions, body=REPORT, program=RIGHT, reference=RIGHT, reading=READING, **options):
    """The report after a model's actions and, in the end, its giving up."""

    def runs(spec):
        source = b"".join(spec.files.values())
        if b"sum(x)" in source:
            return reference
        return program if b"stats.spread" in source else says("something else\n")

    model = ScriptedModel(answers(*map(acts, actions), acts(GIVE_UP), first=reading))
    subject = issue(body, options.pop("title", "spread is wrong"))
    indexer = FakeIndexer(FakeSourceIndex(SOURCES))
    return decide(model, runs, subject, indexer=indexer, **options)


def gates(report):
    return {row.gate for row in report.reconstruction.refusals}


def test_without_an_action_of_its_own_the_right_value_decides_nothing():
    report = outcome({"action": "write", "program": PROGRAM, "contrast": "", "change": ""})
    assert report.verdict.kind == "inconclusive"


def test_the_library_s_own_words_and_runs_of_the_report_s_call_refute_a_report():
    report = outcome(refute())
    assert report.verdict.kind == "not_reproduced"
    assert report.verdict.failures == 0
    assert report.verdict.runs > 5
    printed = terminal.terminal(report, width=400)
    assert f"The library does what its documentation says: {DOCS}" in printed
    assert "the words are in acme/stats.py" in report.verdict.checked


def test_an_independent_computation_of_the_value_refutes_a_report():
    report = outcome(refute(path="", quote="", contrast=REFERENCE))
    assert report.verdict.kind == "not_reproduced"
    printed = terminal.terminal(report, width=400)
    assert "A computation without the library gives the same value, 1.2472" in printed


def test_the_last_program_is_meant_where_none_is_given():
    wrote = {"action": "write", "program": PROGRAM, "contrast": "", "change": ""}
    assert outcome(wrote, refute(program="")).verdict.kind == "not_reproduced"


def test_a_program_that_fails_as_reported_reproduces_whatever_it_was_to_show():
    report = outcome(refute(), program=WRONG)
    assert report.verdict.kind == "reproduced"


@pytest.mark.parametrize(
    ("gate", "fields", "options"),
    [
        # Neither ground, only code for a quote, words of another package.
        ("refute_grounds", {"quote": "", "path": ""}, {}),
        ("undocumented", {"quote": "return x.std(ddof=ddof) * 1.0000"}, {}),
        ("undocumented", {"path": "other/stats.py"}, {}),
        # No computation of its own, a constant, another value, a yes.
        ("refute_reference", {"quote": "", "contrast": PROGRAM}, {}),
        ("refute_reference", {"quote": "", "contrast": "print('REPRISE {\"spread\": 1.2472}')\n"}, {}),
        ("refute_reference", {"quote": "", "contrast": REFERENCE}, {"reference": WRONG}),
        ("refute_reference", {"quote": "", "contrast": REFERENCE}, {"reference": says("", 1)}),
        ("refute_reference", {"contrast": REFERENCE}, {"reference": WRONG}),
        # Other arguments, another input, a call that is left out.
        ("refute_call", {"program": PROGRAM.replace("ddof=0", "ddof=1")}, {}),
        ("refute_call", {"program": PROGRAM.replace(", ddof=0", "")}, {}),
        ("refute_call", {"program": PROGRAM.replace("4.0", "8.0")}, {}),
        ("refute_call", {"program": PROGRAM.replace("4.0]", "4.0], dtype='f8'")}, {}),
        ("refute_call", {}, {"body": REPORT.replace("print(", "spread(values[1:])\nprint(")}),
        # A report that shows no call takes both grounds.
        ("refute_grounds", {}, {"body": "`acme.stats.spread` divides by the wrong number, it seems."}),
    ],
)  # fmt: skip
def test_less_than_that_refutes_nothing(gate, fields, options):
    report = outcome(refute(**fields), **options)
    assert report.verdict.kind != "not_reproduced", report.verdict
    assert gate in gates(report)


PREDICATE = Predicate(op="==", value=1.0)
INTERPRETATION = Interpretation(
    claim="x",
    api=("acme.stats.spread",),
    signature=ObservationSignature(
        name="spread", says="", wrong=PREDICATE, right=PREDICATE, api=("acme.stats.spread",)
    ),
)


@pytest.mark.parametrize(
    ("shown", "program", "is_kept"),
    [
        ("spread(x, 2)", "acme.stats.spread(data, 2)", True),
        ("n = 2\nspread(x, n)", "spread(x, 2)", True),
        ("spread(x, 2)", "n = 2\nspread(x, n)", True),
        ("spread(x, a=1, b=2)", "spread(y, b=2, a=1)", True),
        ("spread(x.cuda(), device='cuda:0')", "spread(x)", True),
        ("x = f(3).to('cuda')\nspread(x)", "y = f(3)\nspread(y)", True),
        ("x = np.ones(3)\nspread(x)", "y = numpy.ones(3)\nspread(y)", True),
        ("spread(x, 2)", "spread(x, 3)", False),
        ("spread(x, 2)", "for n in (2, 3):\n    spread(x, n)", False),
        ("spread(x, a=1)", "spread(x, a=True)", False),
        ("spread(x)", "other(x)", False),
        ("spread(x)", "# spread(x)", False),
        ("x = np.ones(3)\nspread(x)", "spread(np.zeros(3))", False),
        ("w = f(7)\nx = g(w)\nspread(x)", "x = g(w)\nspread(x)", False),
        ("m = Net(spread(4))\nm(spread(5))", "m = Net(spread(4))", False),
    ],
)
def test_a_program_has_the_report_s_calls_and_their_inputs(shown, program, is_kept):
    subject = issue(f"It is wrong.\n\n```python\nfrom acme.stats import spread\n{shown}\n```\n")
    action = RefuteAction(quote=DOCS, path="acme/stats.py")
    here = Environment(id="e", python="3", interpreter="python")
    rows = refutation.refusals(action, program, INTERPRETATION, read_issue(subject), subject, here)
    assert ("refute_call" not in {row.gate for row in rows}) is is_kept


def test_what_another_device_shows_refutes_nothing():
    report = outcome(refute(), title="spread is wrong on a GPU")
    assert report.verdict.kind == "needs_hardware"


@pytest.mark.parametrize(
    ("body", "claims", "version", "kind"),
    [
        ("acme 1.2.0 is affected.", "1.2.0", "1.2.0", "not_reproduced"),
        ("acme 1.2.0 is affected.", "1.2.0", "1.3.0", "inconclusive"),
        ("It worked in acme 1.3.0.", "", "1.3.0", "inconclusive"),
    ],
)
def test_what_another_version_shows_refutes_nothing(body, claims, version, kind):
    def built(spec):
        rows = (Claimed(name="acme", claimed=claims, resolved=version),) if claims else ()
        packages = (Package(name="acme", version=version, rung=PinSource.DATE),)
        return Environment(id="e", python="3", interpreter="python", packages=packages, claims=rows)

    report = outcome(refute(), body=f"{REPORT}\n{body}\n", builder=FakeBuilder(on_build=built))
    assert report.verdict.kind == kind
    assert ("refute_version" in gates(report)) is (kind == "inconclusive")


def test_a_report_whose_own_program_fails_otherwise_is_not_refuted():
    shown = SHOWN + "raise_later = spread(values, ddof=0)\n"

    def runs(spec):
        source = b"".join(spec.files.values())
        is_model = b'"REPRISE"' in source
        return RIGHT if is_model else says("", 1, "ZeroDivisionError: division by zero\n")

    body = REPORT.replace(SHOWN, shown) + "\n```\n1.5275\n```\n"
    model = ScriptedModel(answers(acts(refute()), acts(GIVE_UP), first=READING))
    report = decide(
        model, runs, issue(body, "spread is wrong"), indexer=FakeIndexer(FakeSourceIndex(SOURCES))
    )
    assert report.verdict.kind == "inconclusive"
    assert "fails in another way" in report.verdict.reason


@pytest.mark.parametrize(
    ("path", "text", "says_it"),
    [
        ("a/b.py", 'def f():\n    """It is meant\n    to be so."""\n', True),
        ("a/b.py", "# It is meant\n# to be so.\nx = 1\n", True),
        ("a/b.py", 'raise ValueError("It is meant " f"to be so.")\n', True),
        ("a/b.py", "It is meant to be so.\n", False),
        ("a/b.py", "x = it.is_meant(to, be) - so\n", False),
        ("README.md", "It is\nmeant to be so.\n", True),
    ],
)
def test_only_what_a_file_says_in_words_is_documentation(path, text, says_it):
    assert ("It is meant to be so." in refutation.documentation(path, text)) is says_it
