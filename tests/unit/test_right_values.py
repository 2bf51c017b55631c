"""Reports that show a right value beside a wrong one, and reports that only say that something fails:
their programs are run with a library that has the bug, and with one that has it no more.
"""

import pytest

from bot.issues import script_fixes
from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.issues.reading import issue
from bot.issues.reproduce import plan
from bot.issues.search import report_programs
from bot.issues.signature import freeze, references, values
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, Issue, NonFiniteSignature, OutputSignature
from sandbox.port import RunResult
from tests.support.jobs import issue_job
from tests.support.plain_runs import run_with_probe

LIBRARY = """import os
FIXED = bool(os.environ.get("ACME_FIXED"))
class MixedKinds(Exception): pass
inf, nan = float("inf"), float("nan")
def std(x): return inf if FIXED else 2.872281266575369e+38
def mean(x): return 2.5 if FIXED else nan
def log(x): return [0.0, 0.7, 1.1, 1.4] if FIXED else [0.0, nan, 1.1, 1.4]
def norm(x): return 5.0 if FIXED else 3.0
def order(x): return [2, 1] if FIXED else [1, 2]
def total(x): return 7 if FIXED else 6
def array(values):
    if not FIXED and len({type(one) for one in values}) > 1:
        raise MixedKinds("did not expect a str")
    return values
def pad(x, mode="zero"):
    if mode == "mirror" and not FIXED:
        raise IndexError("mirror index 4 is out of range")
    return x
class Layer:
    def __init__(self, size): self.size = size
    def __call__(self, x):
        if not FIXED:
            raise ValueError("axis alignment failed for operand of rank 3")
        return x
"""
IMPORTS = "import math\nimport numpy as np\nimport acme\nx = [3.0, 4.0]\n"


def fence(text, tag="python"):
    return f"```{tag}\n{text}\n```\n\n"


@pytest.fixture
def outcomes(tmp_path):
    """What a report's first program shows with the bug and without; None without a signature."""

    def find(title, body):
        bug = issue.read_issue(Issue(title=title, body=body, repository="acme/acme"))
        frozen = freeze.freeze(bug)
        if frozen is None:
            return None
        script = report_programs.propose(bug, frozen)[0]
        return tuple(
            judge(
                observe(run_with_probe(tmp_path, {"acme": LIBRARY}, script.source, variables)),
                frozen,
                script,
            ).match
            for variables in ({}, {"ACME_FIXED": "1"})
        )

    return find


def signature(title, body, repository="acme/acme"):
    return freeze.freeze(issue.read_issue(Issue(title=title, body=body, repository=repository)))


LOGS = "print('numpy:', [round(float(v), 1) for v in np.log([1, 2, 3, 4])])\nprint('acme:', acme.log(x))"
WRONG_BESIDE_RIGHT = {
    "each with a remark": (
        "std of large values is finite where NumPy returns inf",
        fence(
            f"{IMPORTS}print(np.exp(np.float64(1000)))  # inf  <- correct\n"
            "print(acme.std(x))  # 2.872281266575369e+38  <- bug"
        ),
    ),
    "a reference without a remark": (
        "acme.norm is wrong",
        fence(f"{IMPORTS}print(acme.norm(x))  # 3.0\nprint(np.linalg.norm(x))  # 5.0"),
    ),
    "a sentence, and a program that prints both": (
        "acme.mean is wrong",
        "`acme.mean` returns `nan` instead of `2.5`.\n\n"
        + fence(f"{IMPORTS}print('acme', acme.mean(x))\nprint('numpy', np.mean([1.0, 4.0]))"),
    ),
    "a labelled output": (
        "acme.log gives NaN",
        fence(IMPORTS + LOGS)
        + "Output:\n\n"
        + fence("numpy: [0.0, 0.7, 1.1, 1.4]\nacme: [0.0, nan, 1.1, 1.4]", ""),
    ),
    "an expected variable": (
        "acme.norm is wrong",
        fence(
            f"{IMPORTS}expected = math.hypot(*x)\nprint(expected)  # 5.0\nprint(acme.norm(x))  # 3.0, wrong"
        ),
    ),
    "a table": (
        "acme.norm is wrong",
        fence(f"{IMPORTS}print(acme.norm(x))")
        + "| input | acme | numpy |\n|---|---|---|\n| a | 3.0 | 5.0 |\n",
    ),
    "a NaN that the reference prints too": (
        "acme.mean gives NaN",
        fence(f"{IMPORTS}print('numpy', np.log(np.float64(-1.0)))\nprint('acme', acme.mean(x))"),
    ),
}


@pytest.mark.parametrize("name", WRONG_BESIDE_RIGHT)
def test_the_wrong_value_is_the_failure_and_the_right_one_beside_it_is_not(outcomes, name):
    failing, repaired = outcomes(*WRONG_BESIDE_RIGHT[name])
    assert failing is Match.MATCHED
    assert repaired is not Match.MATCHED


ONLY_RIGHT = {
    "the reference": (
        "acme.norm gives inf",
        fence(f"{IMPORTS}print(np.exp(np.float64(1000)))\nprint(acme.norm(x))"),
    ),
    "a label": (
        "acme.norm should be nan for these",
        fence(f"{IMPORTS}print('expected', math.nan)\nprint('acme', acme.norm(x))"),
    ),
    "a variable": (
        "Is the loss NaN?",
        fence(f"{IMPORTS}target = acme.mean(x)\nprint(target)\nprint(acme.norm(x))"),
    ),
    "in a loop": (
        "acme.norm gives inf",
        fence(
            f"{IMPORTS}for v in (1.0, 1000.0):\n    print(np.exp(np.float64(v)))\n    print(acme.norm(x))"
        ),
    ),
    "by the words": (
        "acme.norm differs",
        "NumPy overflows to infinity, acme does not.\n\n"
        + fence(f"{IMPORTS}print(acme.norm(x), np.inf)"),
    ),
}


@pytest.mark.parametrize("name", ONLY_RIGHT)
def test_a_non_finite_value_that_is_right_is_no_failure(outcomes, name):
    found = outcomes(*ONLY_RIGHT[name])
    assert found is None or Match.MATCHED not in found


def test_a_reference_is_one_only_for_another_library():
    body = fence(
        "import numpy as np\nimport torch\nx = [1.0]\nprint(np.std(x))  # 3.0\n"
        "print(torch.std(torch.tensor(x)))  # 5.0"
    )
    title = "std is wrong: `{}`"
    about_torch = signature(title.format("torch.std"), body, "pytorch/pytorch")
    about_numpy = signature(title.format("np.std"), body, "numpy/numpy")
    assert isinstance(about_torch, OutputSignature)
    assert isinstance(about_numpy, OutputSignature)
    assert (about_torch.observed, about_numpy.observed) == ((("5.0",),), (("3.0",),))


@pytest.mark.parametrize(
    "line",
    [
        "losses.append(acme.mean(x))\nprint('mean', np.mean(losses))",
        "for v in x:\n    losses.append(acme.mean(v))\nprint(np.mean(losses))",
        "out = np.zeros(2)\nout[0] = acme.mean(x)\nprint(np.sum(out))",
        "acme.Fill().into(x)\nprint(np.mean(x))",
        "def run(v):\n    return acme.mean(v)\nprint(np.asarray(run(x)))",
        "print(np.sum([acme.mean(v) for v in x]))",
        "print(np.exp(1.0), acme.mean(x))",
        "print('expected:', math.pi, 'got:', acme.mean(x))",
        "print('correct:', np.allclose(acme.mean(x), 3.0))",
    ],
)
def test_what_the_library_computed_is_no_reference_whatever_shows_it(line):
    prints = references.prints_of(f"{IMPORTS}losses = []\nprint(acme.norm(x))\n{line}", "acme")
    assert not any(row.is_right for row in prints)


def test_a_label_that_the_report_names_binds_a_non_finite_value(outcomes):
    program = f"{IMPORTS}print('margin', acme.std(x) * 0 + math.nan)\nprint('loss', acme.norm(x))"
    title = "The loss is NaN"
    found = signature(title, fence(program))
    assert isinstance(found, NonFiniteSignature)
    assert found.labels == ("loss",)
    assert outcomes(title, fence(program)) == (Match.UNDECIDED, Match.UNDECIDED)


SEVERAL = "print('loss', acme.norm(x), 'grad:', acme.std(x))"
AS_ONE = "print(f'loss {acme.norm(x)} grad {acme.std(x):.2f}')"


@pytest.mark.parametrize("line", [SEVERAL, AS_ONE])
@pytest.mark.parametrize(
    ("printed", "match"),
    [
        ("loss 0.5 grad: nan", Match.MATCHED),
        ("loss nan grad: nan", Match.MATCHED),
        ("loss nan grad: 0.5", Match.UNDECIDED),
        ("loss 0.5 grad: [1.0, nan]", Match.MATCHED),
        ("loss 0.5 grad: 0.5", Match.PASSED),
    ],
)
def test_a_value_beside_the_reported_one_in_its_line_is_not_it(line, printed, match):
    found = signature("The grad is NaN", fence(f"{IMPORTS}{line}"))
    assert found.labels == ("grad",)
    script = Script(files={"repro.py": f"{IMPORTS}{line}"}, origin="report")
    run = RunResult(exit_code=0, stdout=f"{printed}\n", stderr="", seconds=0.1)
    assert judge(observe(run), found, script).match is match


VALUES = {
    "an arrow": ("", "print(acme.order(x))  # -> [1, 2] expected [2, 1]"),
    "a comma": ("", "print(acme.norm(x))  # 3.0, should be 5.0"),
    "one sentence": ("It prints 3.0 but should print 5.0.\n\n", "print(acme.norm(x))"),
    "two sentences": ("It prints 3.0. It should be 5.0.\n\n", "print(acme.norm(x))"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_taken_from_a_comment_or_a_sentence(outcomes, name):
    words, line = VALUES[name]
    found = outcomes("The result is wrong", words + fence(f"import acme\nx = [3.0, 4.0]\n{line}"))
    assert found == (Match.MATCHED, Match.PASSED)


def test_a_sentence_about_the_reference_gives_no_value():
    body = "NumPy returns `[2, 1]` instead of `[1, 2]` here.\n\n"
    assert (
        signature("order differs", body + fence("import acme\nprint(acme.order([2, 1]))")) is None
    )


def test_the_labels_of_the_other_values_bind_a_non_finite_one_beside_a_reference():
    found = signature(*WRONG_BESIDE_RIGHT["a NaN that the reference prints too"])
    assert isinstance(found, NonFiniteSignature)
    assert found.labels == ("acme",)


CLAIMS = {
    "a value that crashes": (
        "acme.array crashes on mixed lists",
        'values = [1, "a"]  # crashes\n# values = ["1", "a"]  # works\nprint(acme.array(values))',
    ),
    "a call in the title": (
        "acme.pad crashes with mode mirror",
        "y = acme.pad([1], mode='mirror')",
    ),
    "the one that does not work": (
        "`acme.pad` fails",
        "acme.pad([1], mode='zero')  # works\nacme.pad([1], mode='mirror')",
    ),
    "a line that is commented out": (
        "Mirroring",
        "acme.pad([1], mode='zero')  # works\n# acme.pad([1], mode='mirror')  # crashes",
    ),
    "an error that occurs": (
        "Batched `acme.pad`: when fed with a list, a runtime error occurs",
        "acme.pad([1], mode='mirror')",
    ),
    "what it fails to do": (
        "Our padders fail to pad lists in a certain case",
        "acme.pad([1], mode='mirror')",
    ),
    "an object": ("`acme.Layer` raises an error", "layer = acme.Layer(4)\nlayer([1, 2, 3])"),
    "an assertion": (
        "A wrong total",
        "assert acme.total([1]) > 0\nassert acme.total([3, 4]) == 7  # fails",
    ),
    "the whole program": (
        "Mirroring",
        "mode = 'mirror'\nfor at in range(2):\n    acme.pad([at], mode=mode)",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_what_a_report_only_says_to_fail_must_fail_in_the_library(outcomes, name):
    title, program = CLAIMS[name]
    words = "The following program crashes.\n\n" if name == "the whole program" else "Run it.\n\n"
    failing, repaired = outcomes(title, words + fence(f"import acme\n{program}"))
    assert failing is Match.MATCHED
    assert repaired is not Match.MATCHED


def test_a_commented_out_line_says_nothing_of_the_one_before_it():
    program = "import acme\ny = acme.pad([1])  # works\n# acme.pad([2])  # raises ValueError"
    found = signature("A small question", fence(program))
    assert isinstance(found, CrashSignature)
    assert found.checks == ("acme.pad([2])",)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("acme.pad fails to agree with the paper", "The relative error is large."),
        ("acme.pad", "It should raise an error but does not."),
        ("acme.pad", "It does not crash, it is only slow."),
        ("Support mirror in pad", "Older versions crashed with it."),
        ("Does acme.pad crash?", "I have not tried."),
        ("acme.pad", "No error occurs in the older version."),
        ("acme.pad fails to converge to the right sum", "It is off by one."),
    ],
)
def test_a_failure_that_is_denied_or_of_another_kind_is_none(title, words):
    program = fence("import acme\nacme.pad([1], mode='mirror')")
    assert signature(title, f"{words}\n\n{program}") is None


# Values that a program lacks.

HUB = """import os
FIXED = bool(os.environ.get("ACME_FIXED"))
class Config:
    def __init__(self, hidden_size=768, **rest): self.hidden_size = hidden_size
class AcmeModel:
    config_class = Config
    def __init__(self, config): self.config = config
    @classmethod
    def from_pretrained(cls, name, **rest):
        raise OSError("We couldn't connect to the hub to load this file")
    def eval(self): return self
    def generate(self, count):
        if self.config.hidden_size > 100 or not FIXED:
            raise ValueError("the cache position must not be empty for this model")
        return count
"""
CACHE = "ValueError: the cache position must not be empty for this model"
NARROW = """def sample(rng, count):
    rng.standard_normal(count)
    raise IndexError("sample index is out of range")
def move(x, device):
    if device != "cpu":
        raise TypeError("no such device")
    raise KeyError("storage")
def reduce(x):
    if x.shape != (2, 3):
        raise TypeError("a (2, 3) array is needed")
    raise ValueError("cannot reduce over the last axis")
"""
LAST_AXIS = "ValueError: cannot reduce over the last axis"
OPEN_VALUES = {
    "a generator": ("", "import numpy as np\nacme.sample(rng, 3)", "IndexError: sample index is out of range", "rng = np.random.default_rng(0)"),
    "a device": ("", "acme.move([1], device)", "KeyError: 'storage'", 'device = "cpu"'),
    "an array of a sentence": ("`x` is an array of shape (2, 3).\n\n", "import numpy as np\nacme.reduce(x)", LAST_AXIS, "x = np.random.default_rng(0).standard_normal((2, 3,))"),
    "an array of a comment": ("", "acme.reduce(x)  # x has shape (2, 3)", LAST_AXIS, 'x = __import__("numpy").random.default_rng(0).standard_normal((2, 3,))'),
    "an ellipsis": ("`x` has shape [2, 3].\n\n", "import numpy as np\nx = ...\nacme.reduce(x)", LAST_AXIS, "x = np.random.default_rng(0).standard_normal((2, 3,))"),
    "a model of a hub": ("", "from transformers import AcmeModel\nm = AcmeModel.from_pretrained('big/model')\nm.generate(3)", CACHE, 'AcmeModel.from_pretrained'),
    "a configuration": ("", "from transformers import AcmeModel\nm = AcmeModel(config)\nm.generate(3)", CACHE, "config = AcmeModel.config_class("),
    "left out arguments": ("", "import numpy as np\nacme.reduce(np.ones((2, 3)), ...)", LAST_AXIS, "left out `...`"),
}  # fmt: skip


def scripts_of(words, program, shown):
    body = f"{words}{fence(f'import acme{chr(10)}{program}')}{fence(shown, '')}"
    bug = issue.read_issue(Issue(title="It fails", body=body, repository="acme/acme"))
    frozen = freeze.freeze(bug)
    assert frozen is not None
    return report_programs.propose(bug, frozen), frozen


@pytest.mark.parametrize("name", OPEN_VALUES)
def test_a_value_that_the_report_describes_is_filled_in_and_listed(tmp_path, name):
    *report, note = OPEN_VALUES[name]
    (script, *_), frozen = scripts_of(*report)
    assert any(note in fix.what for fix in script.fixes)
    libraries = {"acme": NARROW, "transformers": HUB}
    found = judge(observe(run_with_probe(tmp_path, libraries, script.source, {})), frozen, script)
    assert found.match is Match.MATCHED


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ("", "acme.reduce(x)"),
        ("`y` is an array of shape (2, 3).\n\n", "acme.reduce(x)"),
        ("`x` is an array of shape (2, 3).\n\n", "x = load()\nacme.reduce(x)"),
        ("It has a large batch.\n\n", "acme.reduce(model)"),
        ("", "from transformers import AutoTokenizer\nt = AutoTokenizer.from_pretrained('gpt2')"),
        ("", "from transformers import AcmeModel\nm = AcmeModel.from_pretrained('./mine')"),
        ("", "from diffusers import Pipe\nm = Pipe.from_pretrained('a/b')"),
        ("", "from pydantic import Field\nacme.reduce(Field(...))"),
    ],
)
def test_a_value_that_nothing_describes_is_left_open(words, program):
    (script, *_), _ = scripts_of(words, program, LAST_AXIS)
    assert not any(fix.why in {script_fixes.OPEN, script_fixes.UNTRAINED} for fix in script.fixes)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("from transformers import AcmeModel\nm = AcmeModel.from_pretrained('a/b')", "a/b"),
        ("from torchvision.models import resnet18\nm = resnet18(weights='DEFAULT')", "resnet18"),
    ],
)
def test_weights_that_the_operator_has_are_loaded(program, name):
    body = f"{fence(f'import acme{chr(10)}{program}{chr(10)}m.generate(3)')}{fence(CACHE, '')}"
    subject = Issue(title="It fails", body=body, repository="acme/acme")
    for weights in ((name,), ()):
        (script, *_) = plan(issue_job(subject, weights=weights)).scripts
        random = any(fix.why == script_fixes.UNTRAINED for fix in script.fixes)
        assert random is not bool(weights)


def test_a_failure_of_the_filled_in_value_itself_does_not_count(tmp_path):
    shown = "ValueError: the size of a configuration must be odd"
    program = "from transformers import AcmeModel\nm = AcmeModel(config)\nm.generate(3)"
    (script, *_), frozen = scripts_of("", program, shown)
    hub = "class AcmeModel:\n    @staticmethod\n    def config_class(**rest):\n"
    hub += "        raise ValueError('the size of a configuration must be odd')\n"
    run = run_with_probe(tmp_path, {"acme": "", "transformers": hub}, script.source, {})
    assert judge(observe(run), frozen, script).match is Match.UNDECIDED


def test_weights_stay_where_loading_them_is_what_fails():
    shown = (
        'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n'
        "    m = AcmeModel.from_pretrained('a/b')\nValueError: the index is empty here"
    )
    program = "from transformers import AcmeModel\nm = AcmeModel.from_pretrained('a/b')"
    (script, *_), _ = scripts_of("", program, shown)
    assert not script.fixes


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        ("import torchvision\nm = torchvision.models.resnet50(pretrained=True)", "resnet50(pretrained=False)"),
        ("from torchvision.models import resnet18\nm = resnet18(weights='DEFAULT')", "resnet18(weights=None)"),
        ("import timm\nm = timm.create_model('vit', pretrained=True)", "create_model('vit', pretrained=False)"),
        ("from transformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained('openai-community/gpt2')", 'from_config(__import__("transformers").AutoConfig.for_model("gpt2", '),
        ("from transformers import BertModel\nname = 'bert-base-uncased'\nm = BertModel.from_pretrained(name, num_labels=3)", "BertModel(BertModel.config_class("),
    ],
)  # fmt: skip
def test_a_pretrained_model_becomes_a_random_one_of_its_class(code, becomes):
    source, fixes = script_fixes.without_weights(f"{code}\nm(1)\n")
    assert becomes in source
    assert len(fixes) == 1
    assert "m(1)\n" in source


ACTUAL = "return_types.max(values=tensor(3), indices=tensor(2))"
EXPECTED = ACTUAL.replace("tensor(2)", "tensor(1)")


@pytest.mark.parametrize("block", ["```\n{}\n```\n", "    {}\n"])
@pytest.mark.parametrize(
    ("actual", "expected"), [(ACTUAL, EXPECTED), ("3.0", "4.0"), ("tensor([3.])", "tensor([4.])")]
)
def test_an_object_that_is_shown_is_an_output_however_it_stands_there(block, actual, expected):
    shown = f"Actual:\n\n{block.format(actual)}\nExpected:\n\n{block.format(expected)}"
    found = signature("max is wrong", fence("import acme\nprint(acme.norm([1]))") + shown)
    assert isinstance(found, OutputSignature)
    assert [" ".join(chunk) for chunk in found.observed] == [values.clean_display(actual)]
    assert [" ".join(chunk) for chunk in found.expected] == [values.clean_display(expected)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ('This throws "mirror index 4 is out of range".', "mirror index 4 is out of range"),
        ("It fails with `mirror index 4 is out of range`.", "mirror index 4 is out of range"),
        ("It crashes with \u201cmirror index 4 is out of range\u201d.", "mirror index 4 is out of range"),
        ("It raises `acme.pad([1], mode='mirror', size=3, axis=4)`.", None),
        ('It prints "mirror index 4 is out of range".', None),
        ('It fails with "a bang".', None),
    ],
)  # fmt: skip
def test_quoted_words_that_are_thrown_are_a_message_without_its_class(words, message):
    found = signature("pad", fence("import acme\nacme.pad([1], mode='mirror')") + words)
    if message is None:
        assert not (isinstance(found, CrashSignature) and found.message)
    else:
        assert isinstance(found, CrashSignature)
        assert (found.exception, found.message) == ("", message)


def test_a_call_of_objects_is_a_program_where_it_is_imported():
    """Only what no program writes so is taken for what it prints."""
    text = "import acme\nprint(acme.norm(acme.array([3.0, 4.0])))"
    (program,) = issue.read_issue(Issue(title="x", body=fence(text))).programs
    assert program.text.strip() == text


@pytest.mark.parametrize(
    "remark", ["   <-- wrong", " \u2190 should be 2.0", "  <== BUG", " << here"]
)
def test_remarks_behind_an_arrow_are_no_output(remark):
    shown = fence("import acme\nprint(acme.norm([1]))\nprint(acme.order([1]))")
    found = signature("norm is wrong", shown + fence(f"1.0\n3.0{remark}", ""))
    assert isinstance(found, OutputSignature)
    assert found.observed == (("1.0", "3.0"),)


def test_an_arrow_between_values_is_output():
    shown = fence("import acme\nprint(acme.norm([1]))")
    found = signature("norm is wrong", shown + fence("a <- b\n1.0 <- 2.0", ""))
    assert [line for chunk in found.observed for line in chunk] == ["a <- b", "1.0 <- 2.0"]
