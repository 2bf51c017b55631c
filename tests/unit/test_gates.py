"""Every place where something of a model's answer is refused, changed or left out says so: to the
model, which may answer, and in the report.
"""

import re
from pathlib import Path

import pytest

from bot.issues.gates import GATES, VOID
from bot.issues.search.writing import objections
from bot.issues.sections import REFUSED
from bot.kernel.bug import CrashSignature
from bot.kernel.dialogue import Interpretation
from bot.kernel.environment import Claimed, Environment, Package, PinSource
from bot.report import report_json, terminal
from tests.support.fakes import FakeBuilder, ScriptedModel
from tests.support.source_index import FakeIndexer, FakeSourceIndex
from tests.unit.test_reconstruct import (
    BODY,
    CRASH,
    CRASHES,
    FAKED,
    GOOD,
    OWN,
    TWIN,
    answers,
    by_source,
    crash,
    decide,
    issue,
    refined,
    says,
    write,
)

QUOTED = "the boom of the second kv is too small"
SAYING = issue(f"With acme 1.2.0 it stops and says {QUOTED}, for any input.", "kv of two")


def acts(*actions):
    return {"thought": "", "context": 0, "actions": list(actions)}


def a_crash(**row):
    fields = {"exception": "RuntimeError", "message": "", "in_file": "acme/nn.py", **row}
    return refined(kind="crash", observation=None, crash=fields)


def observes(**changes):
    return refined(observation={**refined()["observation"], **changes})


def warns(**row):
    fields = {"category": "", "message": "the bias argument", "at_least": 1, **row}
    return refined(kind="warning", observation=None, warning=fields)


def learns(**row):
    fields = {"metric": "accuracy", "reported": None, "expected": None, **row}
    return refined(kind="training", observation=None, training=fields)


def in_a_tree(spec):
    """Where a clone lies on the path."""
    tree = Path(__file__).parent.parent / "support" / "stub_frameworks"
    return Environment(id="here", python="3", interpreter="python", commit="a" * 40, tree=str(tree))


UNBOUND = "fit() got an unexpected keyword argument 'kv'"
AMEND = {"action": "amend", "exception": "RuntimeError", "message": "", "reason": "seen"}
OTHER_PLACE = {**AMEND, "in_file": "acme/core.py"}
INSTALL = {"action": "environment", "version": "", "reason": ""}
SEARCH = {"action": "search", "query": "lin_key"}


def of_another_version(spec):
    packages = (Package(name="acme", version="1.3.0", rung=PinSource.DATE),)
    claims = (Claimed(name="acme", claimed="1.2.0", resolved="1.3.0"),)
    return Environment(
        id="here", python="3", interpreter="python", packages=packages, claims=claims
    )


SHOWN = "from acme.nn import Layer\nprint(Layer(8, bias=False).lin_key.bias)\n"


def refute(**fields):
    row = {
        "program": GOOD,
        "contrast": "print('REPRISE', len('x'))",
        "path": "acme/nn.py",
        "quote": "Without a bias, lin_key has none.",
    }
    return {"action": "refute", **row, "reason": "it is right", **fields}


def first(reading, **more):
    return {"first": reading, **more}


def then(*acts, **more):
    return {"acts": acts, **more}


def program(source, contrast="", **more):
    return then(write(source, contrast), **more)


ALWAYS = by_source(kv_2=crash("acme/nn.py"), kv_4=crash("acme/nn.py"))
TRIGGERS = {
    "api": first(refined(api=["acme.nn.Layer", "the layer"])),
    "api_absent": first(refined(api=["acme.nn.Layer", "acme.nn.Leier"]), sources=True),
    "package": first(refined(packages=["acme", "-r x"])),
    "pin": first(refined(pins=[{"name": "acme", "version": "newest", "quote": "acme"}])),
    "pin_quote": first(refined(pins=[{"name": "acme", "version": "3.0", "quote": "acme 3.0"}])),
    "pin_works": first(
        refined(pins=[{"name": "acme", "version": "1.1.0", "quote": "It worked in acme 1.1.0"}]),
        subject=issue(f"{BODY} It worked in acme 1.1.0."),
    ),
    "quote": first(refined(quotes=["is not passed on to `lin_key`", "never written there"])),
    "row": first(refined(kind="crash", observation=None)),
    "class": first(a_crash(exception="a RuntimeError")),
    "message": first(a_crash(message="words that nobody wrote")),
    "file": first(a_crash(message=QUOTED, in_file="other/x.py"), subject=SAYING),
    "file_unbound": first(
        a_crash(exception="TypeError", message=UNBOUND, in_file="acme/nn.py"),
        subject=issue(f"It says TypeError: {UNBOUND}."),
    ),
    "file_absent": first(a_crash(message=QUOTED, in_file="acme.py"), subject=SAYING, sources=True),
    "sign": first(a_crash(in_file="")),
    "value_of": first(refined(api=[])),
    "overlap": first(observes(wrong={"op": ">=", "value": 0}, right={"op": ">=", "value": 1})),
    "short_warning": first(warns(message="bias")),
    "category": first(warns(category="LayerWarning")),
    "number": first(learns(reported=0.37)),
    "metric": first(learns(metric="psnr", reported=12.5), subject=issue(BODY + " PSNR is 12.5.")),
    "sign_if_right": first(refined(sign_if_right=True)),
    "request": first(refined(kind="not_a_bug", observation=None, quotes=["Please add a layer"])),
    "unfounded": first(refined(quotes=["never written there"]), subject=issue(OWN)),
    "same_reading": first(
        a_crash(message="lin_key has a bias"),
        subject=issue(OWN),
        runs=says("", 1, "ZeroDivisionError: division by zero"),
    ),
    "amend_late": then(
        acts({"action": "probe", "code": "kv=4"}, OTHER_PLACE),
        acts({"action": "give_up", "reason": "", "questions": []}),
        first=CRASH,
    ),
    "amend_same": then(acts({**AMEND, "in_file": "acme/nn.py"}), first=CRASH),
    "package_name": then(acts({**INSTALL, "package": "beta @ file:///etc"})),
    "python": then(acts({**INSTALL, "package": "python", "version": "2.7"})),
    "stated_version": then(acts({**INSTALL, "package": "acme", "version": "1.3.0"})),
    "not_installed": then(
        acts({**INSTALL, "package": "beta"}),
        builder=FakeBuilder(wrong={"beta is not installed": "it belongs to another", "beta": ""}),
    ),
    "withdrawn": then(acts({**INSTALL, "package": "beta", "version": "-"})),
    "command": then(
        acts({"action": "run", "command": "rm -r .", "change": ""}),
        builder=FakeBuilder(on_build=in_a_tree),
    ),
    "no_probes": then(acts({"action": "probe", "code": "1"}), without=("probe",)),
    "after_program": then(acts(*write("x =")["actions"], SEARCH)),
    "refute_program": then(acts(refute(program="")), sources=True),
    "refute_reading": then(acts(refute()), first=refined(quotes=["never written there"])),
    "refute_grounds": then(acts(refute(contrast="")), sources=True),
    "refute_call": then(acts(refute()), subject=issue(f"{BODY}\n\n```python\n{SHOWN}```\n")),
    "refute_version": then(acts(refute()), builder=FakeBuilder(on_build=of_another_version)),
    "refute_reference": then(acts(refute(contrast=GOOD))),
    "undocumented": then(
        acts(
            {
                "action": "documented",
                "path": "acme/nn.py",
                "quote": "It is meant to be so.",
                "reason": "",
            }
        ),
        sources=True,
    ),
    "syntax": program("x ="),
    "long": program(GOOD + "\n" * 500),
    "undefined": program("from acme.nn import Layer\nLayer(size)\n"),
    "network": program(GOOD + "import subprocess\nsubprocess.run(['ls'])\n"),
    "weights": program(GOOD + "Layer.from_pretrained('acme/base')\n"),
    "gpu": program(GOOD + "layer.cuda()\n"),
    "patched": program(GOOD + "Layer.bias = None\n"),
    "unrelated": program("import json\nprint('REPRISE', json.dumps({'key_bias': len('x') > 0}))\n"),
    "constant": program(FAKED),
    "staged": program(
        f"from acme.nn import Layer\nraise RuntimeError({QUOTED!r})\n",
        first=a_crash(message=QUOTED),
        subject=SAYING,
    ),
    "no_twin": program(CRASHES, first=CRASH),
    "twin": program(CRASHES, TWIN, first=CRASH, runs=ALWAYS),
}


def reported(acts=(), first=None, runs=None, subject=None, sources=False, **options):
    """The model that was asked, and the report."""
    model = ScriptedModel(answers(*(acts or (write(),)), first=first))
    program = runs if callable(runs) else (lambda _: runs or says("nothing"))
    indexer = (
        FakeIndexer(FakeSourceIndex({"acme/nn.py": "class Layer: pass\n"})) if sources else None
    )
    options = {"max_attempts": 1, "max_calls": 6, **options}
    return model, decide(model, program, subject, indexer=indexer, **options)


def test_each_gate_has_an_input_that_meets_it():
    assert TRIGGERS.keys() == GATES.keys()


@pytest.mark.parametrize("gate", GATES)
def test_what_a_gate_refuses_is_said_to_the_model_and_in_the_report(gate):
    model, report = reported(**TRIGGERS[gate])
    refusals = [row for row in report.reconstruction.refusals if row.gate == gate]
    assert refusals, report.reconstruction
    assert report.verdict.kind != "needs_info"
    asked = "\n".join(row.content for one in model.asked for row in one.messages)
    for refusal in refusals:
        assert plain(refusal.says) in plain(asked) or gate in {"not_installed", "twin"}
        printed = terminal.terminal(report, width=20_000)
        assert REFUSED in printed
        assert plain(refusal.says)[:60] in plain(printed)
    (row,) = [
        row for row in report_json.report_json(report)["plan"]["refusals"] if row["gate"] == gate
    ][:1]
    assert row["says"] == refusals[0].says


def test_what_the_library_documents_is_not_a_bug():
    """The words are looked up in the installed source: a model's own count for nothing."""
    wish = {
        "action": "documented",
        "path": "acme/nn.py",
        "quote": "Without a bias, lin_key keeps its own.",
        "reason": "a default",
    }
    sources = {
        "acme/nn.py": 'class Layer:\n    """Without a bias,\n    lin_key keeps its own."""\n'
    }
    model = ScriptedModel(answers(acts(wish)))
    report = decide(model, indexer=FakeIndexer(FakeSourceIndex(sources)))
    assert report.verdict.kind == "not_a_bug"
    assert report.verdict.sentence == wish["quote"]
    assert "The documentation says" in terminal.terminal(report)
    assert report.attempts == ()


@pytest.mark.parametrize("gate", sorted(VOID))
def test_a_reading_of_which_nothing_is_left_may_be_given_once_more(gate):
    """The second answer is the last one; a right one counts like any other."""
    wrong, right = TRIGGERS[gate]["first"], refined()
    readings = [wrong, right]

    def answer(question):
        stage = question.prompt.partition("@")[0]
        return readings.pop(0) if stage == "refine" else write()

    model = ScriptedModel(answer)
    report = decide(
        model, lambda _: says('REPRISE {"key_bias": true}\n'), TRIGGERS[gate].get("subject")
    )
    assert report.verdict.kind == "reproduced"
    assert readings == []
    assert gate in {row.gate for row in report.reconstruction.refusals}


def plain(text):
    return re.sub(r"[\W_]+", " ", text)


def test_a_model_s_place_goes_before_a_statement_that_rules_guessed():
    """`acme.Layer` is built in one statement and fails in the next."""
    body = (
        "An UnboundLocalError is raised with `acme.nn.Layer`:\n\n```python\nfrom acme.nn import Layer\n"
        "layer = Layer(4)\nprint(layer.total())\n```\n"
    )
    reading = a_crash(exception="UnboundLocalError", in_file="acme/nn.py")
    model = ScriptedModel(
        answers(write(CRASHES, TWIN), first={**reading, "quotes": ["is raised with"]})
    )
    report = decide(model, lambda _: says("", 1, "OSError: x"), issue(body), max_attempts=1)
    assert report.reconstruction.refined.signature.frame == "acme/nn.py"


@pytest.mark.parametrize(
    ("line", "weights", "runs"),
    [
        ("Layer.from_pretrained('acme/base')", ("acme/base",), True),
        ("Layer.from_pretrained('acme/base')", ("acme/base-2", "base"), False),
        ("Layer.from_pretrained('acme/base'), Layer.from_pretrained('acme/b')", ("acme/base",), False),
        ("models.resnet18(weights='DEFAULT')", ("resnet18",), True),
        ("models.resnet18(weights='DEFAULT')", ("resnet50",), False),
        ("models.LoraConfig(init_lora_weights='olora')", (), True),
        ("Layer(download=True)", ("acme/base",), False),
    ],
)  # fmt: skip
def test_a_program_may_load_the_weights_that_the_operator_has(line, weights, runs):
    refined = Interpretation(claim="", signature=CrashSignature(exception="ValueError"))
    source = f"from acme import Layer, models\n{line}\n"
    gates = {row.gate for row in objections(source, refined, device="cpu", weights=weights)}
    assert ("weights" not in gates) is runs


def test_importing_the_module_in_question_is_using_it():
    """It may be the import that fails."""
    reading = Interpretation(
        claim="x", signature=CrashSignature(exception="ImportError"), api=("acme.nn",)
    )
    program = "import acme.nn\n"
    assert not objections(program, reading, device="cpu")
    (refusal,) = objections(program.replace("acme.nn", "acme.core"), reading, device="cpu")
    assert refusal.gate == "unrelated"


@pytest.mark.parametrize(
    ("program", "is_related"),
    [
        ("import nets.small\nnets.small.go()\n", True),
        ("from train import main\nmain()\n", True),
        ("import json\nprint(json.load(open('demo/Usage.ipynb')))\n", True),
        ("import json\nprint(json.load(open('other.ipynb')))\n", False),
        ("import json\nprint(json.dumps(1))\n", False),
    ],
)
def test_a_program_may_run_the_repositorys_own_files_in_place_of_naming_what_is_called(
    program: str, *, is_related: bool
) -> None:
    files = {"nets/small.py": b"", "train.py": b"", "demo/Usage.ipynb": b"{}"}
    reading = Interpretation(
        claim="x", signature=CrashSignature(exception="ValueError"), api=("layers.Layer",)
    )
    refusals = objections(program, reading, device="cpu", files=files)
    assert ("unrelated" not in [row.gate for row in refusals]) is is_related
    assert "unrelated" in [row.gate for row in objections(program, reading, device="cpu")]


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("from datasets import load_dataset\nload_dataset('imdb')", True),
        ("import seaborn as sns\nsns.load_dataset('tips')", True),
        ("from acme import load_dataset\nload_dataset('raa')", False),
        ("import seaborn as sns\nrows = 1  # for load_dataset('tips')", False),
        ("from datasets import load_dataset\nload_dataset('json', data_files='a.json')", False),
    ],
)
def test_a_data_set_of_a_hub_is_refused_and_none_of_a_librarys_own(line, is_refused):
    reading = Interpretation(claim="x", signature=CrashSignature(exception="ImportError"))
    gates = {row.gate for row in objections(f"{line}\n", reading, device="cpu")}
    assert gates == ({"network"} if is_refused else set())
