"""Silent failures as predicates over printed values, and programs whose values are no evidence."""

from __future__ import annotations

import pytest

from bot.issues.signature.staged import exercises, unfounded
from bot.issues.signature.values import check_holds, outcome, printed_values
from bot.kernel.bug import ObservationSignature, Predicate

API = ("acme.nn.Layer", "acme.nn.Layer.lin_key")
TESTED = """
import json
from acme.nn import Layer

layer = Layer(4, bias=False)
keys = [name for name, _ in layer.named_parameters() if name.endswith("bias")]
print("REPRISE", json.dumps({"biases": len(keys)}))
"""


@pytest.mark.parametrize(
    ("op", "value", "seen", "expected"),
    [
        ("==", True, True, True), ("==", True, 1, False), ("==", 1.0, 1.00001, True), ("==", 1.0, 1.01, False),
        ("!=", 3, 4, True), ("!=", 3, 3, False), ("<", 2, 1, True), ("<", 2, "1", False), (">=", 2, 2, True),
        ("contains", "NaN found", "a NaN found here", True), ("lacks", 5, [1, 5], False), ("lacks", 5, [1, 2], True),
        ("lacks", 5, 7, False), ("type", "float64", "torch.float64", True), ("nan", None, "NaN", False),
        ("finite", None, 3.0, True), ("==", (1, 2), [1, 2], True), ("==", (1, 2), [1, 2, 3], False), ("==", None, None, True),
    ],
)  # fmt: skip
def test_a_predicate_holds_for_what_it_is_about(op, value, seen, expected):
    assert check_holds(Predicate(op=op, value=value), seen) is expected


def test_nan_is_printed_by_name_and_read_as_a_number():
    (seen,) = printed_values(['REPRISE {"loss": NaN}'], "loss")
    assert check_holds(Predicate(op="nan"), seen)
    (seen,) = printed_values(['REPRISE {"loss": "nan"}'], "loss")
    assert check_holds(Predicate(op="nan"), seen)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['REPRISE {"biases": 3}'], True),
        (['REPRISE {"biases": 0}'], False),
        (['REPRISE: {"biases": 3}'], True),
        (['REPRISE {"biases": 3}', 'REPRISE {"biases": 0}'], None),
        (["biases 3"], None),
        (['REPRISE {"other": 3}'], None),
        (["REPRISE not json"], None),
    ],
)
def test_the_reported_state_the_right_one_or_neither(lines, expected):
    signature = ObservationSignature(
        name="biases",
        says="bias=False leaves biases",
        wrong=Predicate(op=">", value=0),
        right=Predicate(op="==", value=0),
        api=API,
    )
    assert outcome(signature, lines)[0] is expected


def test_a_value_computed_from_the_reported_code_is_evidence():
    assert unfounded(TESTED, API, "biases") == ""
    assert exercises(TESTED, API)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (TESTED.replace("len(keys)", "3"), "does not come from"),
        (TESTED.replace("from acme.nn import Layer", "class Layer: pass"), "uses none of"),
        (TESTED.replace("from acme.nn import Layer", "from other.nn import Layer"), "uses none of"),
        (TESTED.replace('print("REPRISE", json', "print(json"), "never prints"),
        ("import acme\nprint('REPRISE {\"biases\": 3}')\n", "uses none of"),
        ("def f(:\n", "no valid Python"),
    ],
)
def test_a_value_from_elsewhere_is_not(source, why):
    assert why in unfounded(source, API, "biases")


def test_a_constant_that_is_handed_to_the_code_in_question_stays_a_constant():
    source = "import json\nfrom acme.nn import Layer\nwidth = 3\nLayer(width)\nprint('REPRISE', json.dumps({'biases': width}))\n"
    assert "does not come from" in unfounded(source, API, "biases")


@pytest.mark.parametrize(
    "source",
    [
        (
            "import json\nfrom acme.nn import Layer\nclass Spy:\n    def __init__(self):\n        self.calls = []\nspy = Spy()\n"
            "layer = Layer(spy)\nlayer.step()\nprint('REPRISE', json.dumps({'biases': len(spy.calls)}))\n"
        ),
        "import acme, json\nwith acme.record() as seen:\n    acme.nn.Layer(4)\nprint('REPRISE ' + json.dumps({'biases': len(seen)}))\n",
        "import acme, json\nseen = []\nseen.append(acme.nn.Layer(4).bias)\nprint(f'REPRISE {json.dumps({\"biases\": len(seen)})}')\n",
        "import json\nfrom acme import nn\nclass Mine(nn.Layer):\n    pass\nm = Mine(1)\nprint('REPRISE', json.dumps(dict(biases=m.n)))\n",
        "import json\nfrom acme.nn import Layer as L\ndef count():\n    return L(3).n\nn = count()\nprint('REPRISE', json.dumps({'biases': n}))\n",
    ],
)
def test_evidence_may_take_detours(source):
    assert unfounded(source, API, "biases") == ""


@pytest.mark.parametrize(
    "source",
    [
        (
            "from acme.nn import Layer, context\nimport json\nwith context():\n    made = other()\n"
            'print("REPRISE", json.dumps({"biases": made.count}))\n'
        ),
        (
            'import json, os\nfrom acme.nn import Layer\nLayer().save("out")\n'
            'print("REPRISE", json.dumps({"biases": sorted(os.listdir("out"))}))\n'
        ),
        (
            'import json\nfrom pathlib import Path\nfrom acme.nn import Layer\nLayer().save("a.txt")\n'
            'text = Path("a.txt").read_text()\nprint("REPRISE", json.dumps({"biases": text}))\n'
        ),
        (
            "import gc, json\nfrom acme.nn import Layer\nLayer()\nleft = len(gc.get_objects())\n"
            'print("REPRISE", json.dumps({"biases": left}))\n'
        ),
        (
            "import json, threading\nfrom acme.nn import Layer\nLayer().close()\n"
            'print("REPRISE", json.dumps({"biases": threading.active_count()}))\n'
        ),
    ],
)
def test_what_the_code_leaves_behind_comes_from_it(source):
    api = ("acme.nn.Layer", "acme.nn.context")
    assert unfounded(source, api, "biases") == ""
    assert unfounded(source.replace("acme", "other"), api, "biases") != ""


def test_files_that_the_program_writes_itself_prove_nothing():
    source = (
        'import json\nfrom pathlib import Path\nfrom acme.nn import Layer\nLayer().save("a.txt")\n'
        'Path("b.txt").write_text("3")\ntext = Path("b.txt").read_text()\n'
        'print("REPRISE", json.dumps({"biases": text}))\n'
    )
    assert "does not come from" in unfounded(source, ("acme.nn.Layer",), "biases")
