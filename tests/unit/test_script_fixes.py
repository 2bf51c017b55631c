import ast

import pytest

from bot.environment import imports
from bot.issues import script_fixes


def run(source):
    space = {"__name__": "__main__"}
    exec(compile(source, "mended", "exec"), space)
    return space


def test_demands_for_a_gpu_become_ones_for_the_processor():
    source = 'model = net.cuda()\nx = rand(2, device="cuda:0")  # keep me\nt = Trainer(accelerator="gpu", devices=2)\ntorch.cuda.synchronize()\n'
    mended, fixes = script_fixes.to_cpu(source)
    assert (
        mended
        == 'model = net.cpu()\nx = rand(2, device="cpu")  # keep me\nt = Trainer(accelerator="cpu", devices=1)\nNone\n'
    )
    assert len(fixes) == 5


def test_a_program_without_a_gpu_stays_as_it_is():
    source = 'print("cuda is a word", torch.cuda.is_available())\n'
    assert script_fixes.to_cpu(source) == (source, ())


def test_non_ascii_text_before_an_edit_keeps_its_place():
    assert script_fixes.to_cpu('print("é", "cuda")\n')[0] == 'print("é", "cpu")\n'


def test_undefined_names_in_order():
    assert imports.undefined(
        "class A(LightningModule):\n    def f(self, x: Tensor | None): return np.sum(x)\n"
    ) == (
        "LightningModule",
        "Tensor",
        "np",
    )


def test_conventional_imports():
    assert imports.conventional("np", "") == "import numpy as np"
    assert imports.conventional("Tensor", "import torch_geometric") == "from torch import Tensor"
    assert imports.conventional("Tensor", "import jax") == ""
    assert imports.conventional("LightningModule", "") == ""


def test_imports_go_behind_the_docstring_and_future_lines():
    mended, fixes = imports.add_imports(
        '"""Doc."""\nfrom __future__ import annotations\nx = np.ones(2)\n', ("import numpy as np",)
    )
    assert mended.splitlines()[2] == "import numpy as np"
    assert ast.parse(mended)
    assert len(fixes) == 1


def test_a_test_that_nobody_calls_is_called():
    mended, fixes = script_fixes.call_entry(
        "seen = []\ndef test_it(tmp_path):\n    seen.append(tmp_path.exists())\n"
    )
    assert fixes
    assert run(mended)["seen"] == [True]


def test_a_program_that_acts_is_left_alone():
    source = "def main():\n    pass\nmain()\n"
    assert script_fixes.call_entry(source) == (source, ())


def test_expressions_of_a_transcript_print_what_the_prompt_printed(capsys):
    mended, _ = script_fixes.show_expressions("x = 'a'\nx\nprint(x)\nNone\n[\n  1,\n  2]\n")
    run(mended)
    assert capsys.readouterr().out == "'a'\na\n[1, 2]\n"
    assert ast.parse(mended, feature_version=(3, 7))


@pytest.mark.parametrize(
    ("source", "mended"),
    [
        ("epochs = 1000\n", "epochs = 3\n"),
        ("fit(max_epochs=50)\n", "fit(max_epochs=3)\n"),
        ("for step in range(10_000):\n    pass\n", "for step in range(3):\n    pass\n"),
        ("width = 1000\n", "width = 1000\n"),
        ("epochs = 2\n", "epochs = 2\n"),
    ],
)
def test_long_trainings_are_made_short(source, mended):
    assert script_fixes.shorten(source)[0] == mended


def test_statements_that_share_a_line_are_parted_before_one_is_printed(capsys):
    mended, _ = script_fixes.show_expressions("from math import sqrt; sqrt(4); a = 1; a\n")
    run(mended)
    assert capsys.readouterr().out == "2.0\n1\n"


ROOT = """import lib

def helper(x):
    return x + 1

def min_example():
    value = lib.make(helper(2))
    print(value)
"""


def test_the_one_function_that_nothing_uses_is_called():
    mended, fixes = script_fixes.call_entry(ROOT)
    assert mended.endswith('if __name__ == "__main__":\n    min_example()\n')
    assert [fix.what for fix in fixes] == ["added the call `min_example()`"]


@pytest.mark.parametrize(
    "source",
    [
        ROOT + "\ndef other():\n    print(lib.x)\n",
        ROOT.replace("def min_example():", "def min_example(size):"),
        ROOT.replace("def min_example", "@lib.jit\ndef min_example"),
        "def scaled(x=2):\n    return x * 2\n",
    ],
)
def test_which_function_is_meant_is_not_guessed(source):
    assert script_fixes.call_entry(source) == (source, ())
