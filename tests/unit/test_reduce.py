"""Reduction apart from running: edits keep programs valid, the search keeps the oracle true and
ends where nothing goes.
"""

import ast
import contextlib
import io

import pytest
from hypothesis import given, settings, strategies as st

from bot.issues.reduce import (
    expressions,
    expressions as reduce_expressions,
    failure_identity,
    inline,
    inline as reduce_inline,
    search as reduce_search,
    statements,
    statements as reduce_statements,
)
from bot.issues.reduce.edits import (
    ParsedFile,
    Reduction,
    Replacement,
    apply_reductions,
    size,
    valid,
)
from bot.issues.reduce.search import ReductionPass, RejectedReductions
from bot.issues.reduce.statements import unreached
from bot.kernel.attempt import Failure, Judgement, Match, Script
from bot.kernel.bug import Frame

PROGRAM = '''"""Train."""
import os, sys
from dataclasses import dataclass

@dataclass
class Config:
    rate: float = 0.125  # of learning
    width: int = 64

class Model:
    """A model."""
    def __init__(self, config, extra=3):
        self.config = config
        self.weights = [config.width] * extra

    def forward(self, x, scale=2):
        for i in range(3):
            y = x + i
        if x > 1:
            y = y / (x - x)
        else:
            y = 0
        return y

def load(path, verbose=True):
    data = list(range(10))
    if verbose:
        print("loaded",
              path)
    return data

def main():
    config = Config()
    model = Model(config, extra=5)
    for row in load("x"):
        with open("/dev/null") as target:
            print(model.forward(row + 2), file=target)

if __name__ == "__main__":
    main()
'''


def divides(files):
    """Whether a program ends in a division by zero."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            exec(compile(files["repro.py"], "repro.py", "exec"), {"__name__": "__main__"})
        except ZeroDivisionError:
            return True
        except BaseException:
            return False
    return False


def reduce(files, oracle, most=24):
    """The whole reduction with an oracle at hand; also how many programs it asked about."""
    known = {}

    def ask(candidate):
        key = tuple(sorted(candidate.items()))
        return known.setdefault(key, None) or known.update({key: oracle(candidate)}) or known[key]

    about = reduce_search.ProgramFacts("repro.py")
    steps = [reduce_search.coarse, reduce_search.settle]
    while True:
        make = steps.pop(0) if steps else reduce_search.fine
        before = reduce_statements.format_files(files)
        search = ReductionPass.over(before, make(before, about))
        while found := search.propose(most):
            assert all(valid("repro.py", each.files["repro.py"]) for each in found)
            search.learn([(each, ask(each.files)) for each in found])
        files = reduce_statements.format_files(search.files)
        if make is reduce_search.fine and files == before:
            return files, len(known)


def test_a_program_is_reduced_to_what_fails_and_is_then_left_alone():
    small, tests = reduce({"repro.py": PROGRAM}, divides)
    assert divides(small)
    assert size(small)[0] <= 5
    assert tests < 500
    assert reduce(small, divides)[0] == small


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "import os",
                "x = 3",
                ("def f(a, b=2):\n    return a * b"),
                "y = f(x, b=4)",
                "print(y)",
                ("for i in range(5):\n    x = x + i"),
                ("with open('/dev/null') as g:\n    x = 1"),
                ("if x > 2:\n    z = [x, 1]\nelse:\n    z = {}"),
                ("class A:\n    n = 4\n\n    def g(self):\n        return self.n"),
                "a = A().g()",
                ("try:\n    x = 2\nexcept ValueError:\n    x = 5"),
            ]
        ),
        max_size=9,
    ),
    st.sampled_from(["x", "f", "A", "print", "range", "try", "z"]),
)
def test_every_step_is_valid_keeps_the_oracle_true_and_the_end_is_a_fixed_point(lines, word):
    files = {"repro.py": "\n".join([*lines, f"{word if word != 'try' else 'x'}_kept = 1"]) + "\n"}

    def oracle(candidate):
        names = {
            node.id
            for node in ast.walk(ast.parse(candidate["repro.py"]))
            if isinstance(node, ast.Name)
        }
        return any(name.startswith(word[0]) for name in names)

    if not oracle(files):
        return
    small, _ = reduce(files, oracle)
    assert oracle(small)
    assert size(small) <= size(files)
    assert reduce(small, oracle)[0] == small


def test_a_block_that_loses_all_its_statements_gets_a_pass():
    source = "def f():\n    a = 1\n    b = 2\n\nf()\n"
    nodes = reduce_statements.trees({"r.py": source})[0][0].children[0]
    both = apply_reductions({"r.py": source}, [node.reduction for node in nodes])
    assert both == {"r.py": "def f():\n    pass\n\nf()\n"}


def test_of_overlapping_pieces_the_outer_one_holds_and_nonsense_is_no_candidate():
    files = {"r.py": "a = f(1, 2)\nb = 2\n"}
    outer, inner = (
        Reduction("all", (Replacement("r.py", 0, 12),)),
        Reduction("one", (Replacement("r.py", 6, 9),)),
    )
    assert apply_reductions(files, [inner, outer]) == {"r.py": "b = 2\n"}
    assert apply_reductions(files, [Reduction("half", (Replacement("r.py", 4, 6),))]) is None
    assert apply_reductions(files, []) is None


@pytest.mark.parametrize(
    ("source", "what", "after"),
    [
        ("RATE = 3\nprint(RATE)\n", "RATE by its value", "print(3)\n"),
        (
            "def f(a, b=2):\n    c = a + b\n    return c\nx = f(1)\n",
            "f in its caller",
            "c = 1 + 2\nx = c\n",
        ),
        (
            "def f(a):\n    a += 1\n    return -a\nx = 2 - f(len('a'))\n",
            "f in its caller",
            "a = len('a')\na += 1\nx = 2 - (-a)\n",
        ),
        (
            "def f(a, b):\n    return a\nf(1, b=2)\n",
            "drop parameter b",
            "def f(a):\n    return a\nf(1)\n",
        ),
    ],
)
def test_names_are_replaced_by_what_they_stand_for(source, what, after):
    edit = next(edit for edit in inline.inline_edits({"r.py": source}, "r.py") if edit.what == what)
    assert apply_reductions({"r.py": source}, [edit]) == {"r.py": after}


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("x = f(1)\nx = g(x)\nh(x)\n", ["x = g(f(1))\nh(x)\n", "x = f(1)\nh(g(x))\n"]),
        ("n = 2\nf(n)\nn = 3\nf(n)\n", ["f(2)\nn = 3\nf(n)\n", "n = 2\nf(n)\nf(3)\n"]),
        ("x = a + b\ny = x.y\nx = 1\n", ["y = (a + b).y\nx = 1\n"]),
        ("x = 1\nf(x, x)\nx = 2\n", []),
        ("x = 1\nprint(f'{x}')\nx = 2\n", []),
        ("x = 1\nf(lambda: x)\nx = 2\n", []),
        ("x = 1\ndef f():\n    return x\nx = 2\n", []),
        ("x = 1\nx += f(x)\n", []),
        ("x = 1\nif a:\n    x = 2\nf(x)\n", []),
        ("if a:\n    x = 1\n    f(x)\nx = 2\n", ["if a:\n    f(1)\nx = 2\n"]),
    ],
)
def test_a_value_is_written_where_it_is_read_before_its_name_gets_another(source, after):
    found = list(reduce_inline.rebound(ParsedFile("r.py", source, ast.parse(source))))
    assert [apply_reductions({"r.py": source}, [edit]) for edit in found] == [
        {"r.py": each} for each in after
    ]


def test_an_attribute_that_is_set_and_read_once_is_written_where_it_is_read():
    source = "net.fc = Linear(4, 2)\nnet.a = 1\nx.a = 2\nprint(net.a)\nnet.fc(x)\n"
    made = [
        edit
        for edit in reduce_inline.variable_edits([ParsedFile("r.py", source, ast.parse(source))])
        if edit.what == "net.fc in its place"
    ]
    assert [apply_reductions({"r.py": source}, [edit]) for edit in made] == [
        {"r.py": source[22:].replace("net.fc(x)", "Linear(4, 2)(x)")}
    ]
    assert not [
        edit
        for edit in reduce_inline.variable_edits([ParsedFile("r.py", source, ast.parse(source))])
        if ".a " in edit.what
    ]


def test_where_the_failure_is_a_value_it_must_be_plain_that_nobody_else_reads_it():
    sources = ("x = f(1)\nx = g(x)\n", "x = f(1)\ny = 2\nx = g(x)\n", "x = 0\nx = f(1)\ng(x)\n")
    found = [
        next(reduce_inline.rebound(ParsedFile("r.py", each, ast.parse(each)))) for each in sources
    ]
    assert [edit.alters_values for edit in found] == [False, True, True]


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("for a, b in data():\n    f()\n", ["for _ in range(2):\n    f()\n"]),
        ("for i in data():\n    f(i)\n", ["for i in range(2):\n    f(i)\n"]),
        ("for a, b in data():\n    f(a)\n", []),
        ("for i in range(9):\n    f(i)\n", []),
        ("x = [f(1) for _ in data()]\n", ["x = [f(1)]\n"]),
        ("x = g(f(i) for i in data())\n", []),
    ],
)
def test_a_loop_needs_no_data_that_it_does_not_read(source, after):
    assert [
        apply_reductions({"r.py": source}, [edit])
        for edit in reduce_expressions.loops({"r.py": source})
    ] == [{"r.py": each} for each in after]


def test_of_several_names_set_at_once_each_may_go():
    source = "a, b = f(), g()\n"
    pairs = [edit for edit in expressions.edits({"r.py": source}) if edit.what == "drop pair"]
    assert [apply_reductions({"r.py": source}, [edit]) for edit in pairs] == [
        {"r.py": "b = g()\n"},
        {"r.py": "a = f()\n"},
    ]
    assert not [
        edit
        for edit in expressions.edits({"r.py": "a, *b = f(), g()\n"})
        if edit.what == "drop pair"
    ]


def test_another_file_of_the_program_takes_the_place_of_its_import():
    files = {"repro.py": "from net import f\nf()\n", "net.py": "def f():\n    1 / 0\n"}
    edit = next(edit for edit in inline.inline_edits(files, "repro.py") if edit.drops)
    assert apply_reductions(files, [edit]) == {"repro.py": "def f():\n    1 / 0\nf()\n"}


def test_what_nothing_reads_goes_with_all_that_only_it_reads():
    source = (
        "import json\ndef g():\n    return json\ndef f():\n    return g()\nunused = f()\nprint(1)\n"
    )
    nodes = statements.unread({"r.py": source})
    assert apply_reductions({"r.py": source}, [node.reduction for node in nodes]) == {
        "r.py": "print(1)\n"
    }


def test_what_a_run_never_reached_is_one_set():
    source = (
        "def f():\n    return 1\ndef g():\n    return 2\nif f():\n    x = 1\nelse:\n    x = 2\n"
    )
    ran = frozenset({("r.py", 1), ("r.py", 2), ("r.py", 3), ("r.py", 5), ("r.py", 6)})
    nodes = unreached({"r.py": source}, ran)
    assert apply_reductions({"r.py": source}, [node.reduction for node in nodes]) == {
        "r.py": "def f():\n    return 1\nif f():\n    x = 1\nelse:\n    pass\n"
    }


def test_data_is_made_up_in_its_shape_and_type():
    seen = (
        reduce_expressions.ObservedTensor(path="r.py", name="x", shape=(2, 3), dtype="float64"),
    )
    (edit, *_) = reduce_expressions.synthetic({"r.py": "x = load()\n"}, seen)
    assert apply_reductions({"r.py": "x = load()\n"}, [edit]) == {
        "r.py": "x = torch.rand(2, 3, dtype=torch.float64)\n"
    }
    assert edit.alters_values


def test_where_the_failure_is_a_value_no_other_values_are_put_in():
    careful = reduce_search.fine(
        {"repro.py": PROGRAM}, reduce_search.ProgramFacts("repro.py", keep_values=True)
    )
    assert careful
    assert not [node for group in careful for node in group if node.reduction.alters_values]
    assert any(edit.alters_values for edit in expressions.edits({"repro.py": PROGRAM}))


def test_the_layout_is_what_people_expect_and_says_the_same():
    source = 'import os\nx = """a\n\n\nb"""\n\n\n\ndef f():\n\n    return x\nf()\n'
    text = reduce_statements.format_files({"r.py": source})["r.py"]
    assert text == 'import os\n\nx = """a\n\n\nb"""\n\n\ndef f():\n    return x\n\n\nf()\n'
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))


MESSAGE = "mat1 and mat2 shapes cannot be multiplied (16x48 and 192x10)"


def judged(
    message=MESSAGE, line=134, path="torch/nn/modules/linear.py", exception="RuntimeError", own=2
):
    frames = (
        Frame(path="/repro/repro.py", line=own, function="<module>", code="f(x)"),
        *(
            [
                Frame(
                    path=f"/e/site-packages/{path}",
                    package="torch",
                    module_path=path,
                    line=line,
                    function="forward",
                )
            ]
            if path
            else []
        ),
    )
    return Judgement(
        match=Match.MATCHED,
        reason="",
        failure=Failure(exception=exception, message=message, frames=frames),
    )


SCRIPT = Script(files={"repro.py": "x = 1\ny = g(f(x + 2), k=3)\nz = h(x)\n"})


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"message": MESSAGE.replace("192x10", "96x10")}, "shapes"),
        (
            {"message": "mat1 and mat2 must have the same dtype, but got Float and Double"},
            "another message",
        ),
        ({"exception": "ValueError"}, "ValueError"),
        ({"line": 140}, "another location"),
        ({"path": "torch/nn/functional.py"}, "another location"),
    ],
)
def test_another_failure_is_a_slip(other, why):
    held = failure_identity.identity(judged(), SCRIPT)
    assert failure_identity.difference(held, judged(), SCRIPT) == ""
    assert why in failure_identity.difference(held, judged(**other), SCRIPT) or other.get(
        "message", ""
    ).startswith(MESSAGE[:20])
    assert failure_identity.difference(held, judged(**other), SCRIPT)


def test_a_failure_in_the_program_itself_stays_with_its_statement():
    plain = {"path": "", "message": "list index out of range", "exception": "IndexError"}
    held = failure_identity.identity(judged(**plain), SCRIPT)
    smaller = Script(files={"repro.py": "x = 1\ng(f(x))\nz = h(x)\n"})
    assert failure_identity.difference(held, judged(**plain), smaller) == ""
    assert "statement" in failure_identity.difference(held, judged(**plain, own=3), smaller)


SUMS = "a = 1\nb = 2\nprint(a + b)\n"


def proposed(files, rejected, oracle):
    """The programs that a pass over statements tries, in order."""
    search, seen = ReductionPass.over(files, statements.trees(files), rejected), []
    while found := search.propose(24):
        seen += [each.files["p.py"] for each in found]
        search.learn([(each, oracle(each.files["p.py"])) for each in found])
    return seen


def test_what_was_rejected_is_tried_again_when_what_it_hangs_on_has_changed():
    rejected = RejectedReductions()

    def never(_text):
        return False

    first = proposed({"p.py": SUMS}, rejected, never)
    assert "b = 2\nprint(a + b)\n" in first
    assert proposed({"p.py": SUMS}, rejected, never) == []
    assert rejected.skipped > 0
    other = proposed({"p.py": SUMS.replace("b = 2", "b = 3")}, rejected, never)
    assert "b = 3\nprint(a + b)\n" not in other, "nothing that has to do with a has changed"
    assert "a = 1\nprint(a + b)\n" in other
    assert proposed({"p.py": SUMS}, None, never) == first


def test_parts_of_what_was_rejected_as_a_whole_are_tried():
    text = "if a:\n    x = 1\n    y = 2\nelse:\n    z = 3\n"
    rejected = RejectedReductions()
    rejected.view({"p.py": text}).note((statements.trees({"p.py": text})[0][0],))
    tried = proposed({"p.py": text}, rejected, lambda _text: False)
    assert "" not in tried
    assert "if a:\n    y = 2\nelse:\n    z = 3\n" in tried


def test_what_goes_together_is_tried_together_first():
    text = "".join(f"x{number} = {number}\n" for number in range(12)) + "print(1)\n"
    tried = proposed({"p.py": text}, None, lambda each: "print(1)" in each)
    assert "print(1)\n" in tried
    assert len(tried) < 26, "not every part of what can go as a whole"


def test_equal_statements_are_each_tried_in_one_pass():
    text = "".join(f"lib.step()\nprint({number})\n" for number in range(40))
    rejected = RejectedReductions()
    first = proposed({"p.py": text}, rejected, lambda _text: False)
    assert rejected.skipped == 0
    assert len([each for each in first if each.count("\n") == 79]) == 80
    assert proposed({"p.py": text}, rejected, lambda _text: False) == []


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_what_only_looks_like_the_end_of_a_line_is_none(odd):
    source = f"s = 'a{odd}b'\ndef f(x):\n    return x + s\n\n\ny = f(3)\nz = y\nprint(z, s)\n"
    small, _ = reduce(
        {"repro.py": source},
        lambda files: odd in files["repro.py"] and "print" in files["repro.py"],
    )
    assert odd in small["repro.py"]
    assert size(small)[0] == 1
    edit = next(
        each
        for each in inline.inline_edits({"repro.py": source}, "repro.py")
        if each.what == "y in its place"
    )
    after = apply_reductions({"repro.py": source}, [edit])
    assert "z = f(3)\nprint(z, s)" in after["repro.py"]


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("[-3 -1 0 1 3]", True),
        ("[-4. -2. 0. 2. 4.]", False),
        ("[-4 -2 0 2 4.5]", False),
        ("[-4 -2 0 2]", False),
    ],
)
def test_whole_numbers_stay_whole(line, same):
    def printed(text):
        return Judgement(
            match=Match.MATCHED, reason="the reported output was printed", evidence=text
        )

    script = Script(files={"repro.py": "print(f())\n"})
    held = failure_identity.identity(printed("[-4 -2 0 2 4]"), script)
    assert (failure_identity.difference(held, printed(line), script) == "") is same
