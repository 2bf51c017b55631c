"""From a report and a index to ranked contexts."""

from __future__ import annotations

import pytest

from bot.issues.reading import issue as reading_issue
from bot.issues.search import contexts, prompt_text
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.dialogue import Interpretation, ReadAction
from bot.kernel.environment import Chunk, Context
from bot.kernel.source import index, outline
from bot.kernel.source.outline import fit_chunks, merge_chunks, size
from tests.support.fakes import FakeSourceIndex

LONG = "\n".join(f"        total = total + {n}" for n in range(300))
TEXTS = {
    "net/__init__.py": "from .attention import Attention\nfrom .padding import align_right\n",
    "net/attention.py": f'''"""Attention."""
from net.padding import align_right


class Attention:
    """Scores keys.

    Much more.
    """

    def __init__(self, heads: int, *, flash: bool = False) -> None:
        """Make it."""
        self.heads = heads

    def forward(self, keys, mask=None):
        """Scores."""
        keys = align_right(keys, 0)
        return self.soften(keys)

    def soften(self, keys):
        """Soft maximum."""
        total = keys
{LONG}
        raise ValueError("heads must divide the width of the keys")
''',
    "net/padding.py": '''"""Padding."""


def align_right(tokens, lens, pad_id=0):
    """Shift tokens to the right."""
    moved = tokens[lens:]
    return moved


def unrelated(a):
    return a
''',
    "net/optim.py": "def train(model, opt, data):\n    for x in data:\n        opt.zero_grad()\n        model(x).backward()\n        opt.step()\n",
    "other/tool.py": "def polish(surface):\n    '''Polish a surface.'''\n    return surface\n",
}
SHELF = FakeSourceIndex(TEXTS, main=("net",))


def ranked(title: str, body: str, budget: int = 400) -> tuple[Context, ...]:
    issue = Issue(title=title, body=body, repository="o/net")
    return contexts.contexts(reading_issue.read_issue(issue), issue, SHELF, budget)


def first(made: tuple[Context, ...]) -> Chunk:
    return max(made[0].chunks, key=lambda chunk: chunk.score)


def test_a_name_in_the_title_leads_to_its_definition_and_to_who_calls_it() -> None:
    made = ranked("Pad value not used in `align_right`", "It is always zero.")
    assert made[0].module == "net.padding"
    assert first(made).name == "net.padding.align_right"
    assert "`align_right` in the title" in first(made).why
    assert "net.attention.Attention.forward" in [chunk.name for chunk in made[0].chunks]


def test_the_frames_of_a_traceback_come_first() -> None:
    body = """It fails:

```
Traceback (most recent call last):
  File "a.py", line 3, in <module>
    Attention(3).forward(k)
  File "/venv/lib/python3.11/site-packages/net/padding.py", line 90, in align_right
    moved = tokens[lens:]
TypeError: slice indices must be integers
```
"""
    made = ranked("Attention crashes", body)
    assert first(made).name == "net.padding.align_right"
    assert first(made).why[0] == "raised the reported TypeError"


@pytest.mark.parametrize(
    "where",
    [
        "blob/main/src/net/padding.py#L6",
        "blame/0a1b2c3/net/padding.py#L6-L7",
        "blob/fix/x/net/padding.py#L4",
    ],
)
def test_links_to_source_lines_lead_to_the_definition_around_them(where: str) -> None:
    made = ranked("It is wrong", f"See https://github.com/o/net/{where} for the line.")
    assert first(made).name == "net.padding.align_right"
    assert first(made).why[0].startswith("the report links to line ")


def test_a_quoted_line_is_found_where_it_has_moved_to() -> None:
    body = "See https://github.com/o/net/blob/main/net/padding.py#L400\n\n```python\n    moved = tokens[lens:]\n```\n"
    assert first(ranked("It is wrong", body)).name == "net.padding.align_right"


def test_the_words_of_an_error_lead_to_where_it_is_raised() -> None:
    made = ranked("Broken", "I get `ValueError: heads must divide the width of the keys`.")
    assert made[0].module == "net.attention"
    assert any(chunk.name == "net.attention.Attention.soften" for chunk in made[0].chunks)


def test_the_constructor_is_shown_to_who_must_build_the_object() -> None:
    made = ranked("`Attention.forward` ignores its mask", "")
    shown = {chunk.name: chunk for chunk in made[0].chunks}
    assert "flash: bool = False" in shown["net.attention.Attention.__init__"].text
    assert "constructs Attention" in shown["net.attention.Attention.__init__"].why


def test_a_report_of_no_learning_is_shown_a_training_loop() -> None:
    made = ranked(
        "Loss does not decrease",
        "The model is not learning, the loss stays the same over all epochs.",
    )
    assert "net/optim.py" in {chunk.path for each in made for chunk in each.chunks}


def test_the_budget_is_kept_and_every_line_is_a_line_of_its_file() -> None:
    for budget in (400, 120, 60):
        made = ranked(
            "`Attention.soften` and `align_right` and `train`", "polish a surface", budget
        )
        assert len(made) <= 4
        assert sum(size(each.chunks) for each in made) <= max(budget, 120)
        for chunk in (chunk for each in made for chunk in each.chunks):
            lines = TEXTS[chunk.path].split("\n")[chunk.start - 1 : chunk.end]
            assert chunk.text.split("\n") == lines
            assert chunk.why


def test_the_reports_own_program_is_not_shown_again() -> None:
    made = ranked(
        "`align_right` is wrong",
        "```python\nfrom net import align_right\nprint(align_right([1, 2], 1))\n```",
    )
    assert "print(align_right" not in prompt_text.show_contexts(made)


def body_of(made: tuple[Context, ...], name: str) -> str:
    """What a reader of the prompt sees of a definition."""
    pieces = [chunk for each in made for chunk in each.chunks if chunk.name.endswith(name)]
    return prompt_text.list_pieces(pieces)


def test_a_named_function_is_shown_whole_without_its_docstring() -> None:
    seen = body_of(ranked("`Attention.forward` ignores its mask", ""), "Attention.forward")
    assert "keys = align_right(keys, 0)" in seen
    assert "return self.soften(keys)" in seen
    seen = prompt_text.show_contexts(ranked("`Attention` ignores its mask", ""))
    assert "class Attention:" in seen
    assert "Scores keys." not in seen, "a class line with words of its docstring tells nothing"
    assert "Much more." not in seen
    assert "self.heads = heads" in seen, "the constructor of a named class"
    assert "return self.soften(keys)" in seen, "and what its call does"


def test_source_code_is_shown_as_it_lies_there_with_a_number_where_lines_are_left_out() -> None:
    text = '''class Scale:
    factor = 2

    def apply(self, x):
        """Multiply.

        Much more.
        """
        scaled = x * self.factor

        return scaled


# def removed(self):
#     return 1
'''
    sources = FakeSourceIndex({"net/scales.py": text}, main=("net",))
    (piece,) = sources.symbol("Scale.apply", 1)
    (shown,) = outline.body(piece)
    seen = prompt_text.list_pieces([shown.model_copy(update={"why": ("a reason",)})])
    rows = [
        "net/scales.py (net 1.0):",
        "[4-11: a reason]",
        "def apply(self, x):",
        '    """Multiply.',
        "[9]",
        "    scaled = x * self.factor",
        "",
        "    return scaled",
    ]
    assert seen.splitlines()[1:-1] == rows


def test_an_entry_point_of_which_the_claim_does_not_speak_comes_behind_the_code_at_fault() -> None:
    texts = {
        "net/entry.py": "def load(x):\n    return x\n",
        "net/core.py": "def pad(x):\n    return x\n",
    }
    issue = Issue(title="Wrong", body="It is zero.", repository="o/net")
    bug, sources = reading_issue.read_issue(issue), FakeSourceIndex(texts, main=("net",))
    for claim, first_path in (("pad drops x", "net/core.py"), ("load drops x", "net/entry.py")):
        refined = Interpretation(claim=claim, signature=None, api=("net.load", "net.pad"))
        made = contexts.contexts(bug, issue, sources, refined=refined)
        assert first(made).path == first_path, claim


LONG_FRAME = """It fails:

```
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/net/attention.py", line 900, in soften
    total = total + 222
TypeError: unsupported
```
"""


@pytest.mark.parametrize(
    ("title", "body", "line"),
    [
        ("It fails", LONG_FRAME, "total = total + 222"),
        ("It is wrong", "https://github.com/o/net/blob/main/net/attention.py#L150", "total + 127"),
        ("Broken", "It says `ValueError: heads must divide the width`.", "raise ValueError("),
    ],
)
def test_a_long_body_is_cut_around_the_line_that_matters(title: str, body: str, line: str) -> None:
    made = ranked(title, body)
    seen = body_of(made, "Attention.soften")
    assert line in seen
    assert "def soften(self, keys):" in seen
    assert "total = total + 5\n" not in seen
    assert size(chunk for chunk in made[0].chunks if chunk.name.endswith("soften")) <= 120


@pytest.mark.parametrize(
    "message", ["the pad_id 7 was given but no lens", "a width of 8 is no multiple of four heads"]
)
def test_the_fixed_words_of_a_message_are_found_between_its_values(message: str) -> None:
    texts = {
        "net/core.py": 'def pad(n):\n    raise ValueError(f"the pad_id {n} was given "\n'
        '        "but no lens")\n\n\ndef split(n):\n    assert n, f"a width of {n} is no "\n'
        '        "multiple of four heads"\n',
        "net/words.py": "def lens_was_given(multiple, four, heads, width, pad_id, given, lens):\n    pass\n",
    }
    issue = Issue(title="Broken", body=f"```\nValueError: {message}\n```\n")
    made = contexts.contexts(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
    assert {chunk.path for each in made for chunk in each.chunks} == {"net/core.py"}
    wanted = "net.core.pad" if "pad_id" in message else "net.core.split"
    assert first(made).name == wanted


@pytest.mark.parametrize("name", ["padding.py", "net/padding.py", "src/net/padding.py"])
def test_a_file_that_the_report_names_is_shown(name: str) -> None:
    for title, body in ((f"{name} shifts to the wrong side", ""), ("Shift", f"Look at {name}.")):
        made = ranked(title, body)
        assert made[0].module == "net.padding"
        assert "moved = tokens[lens:]" in prompt_text.show_contexts(made)


def test_an_argument_leads_to_who_holds_it() -> None:
    assert first(ranked("The `pad_id=3` is ignored", "")).name == "net.padding.align_right"


def test_what_only_shares_words_is_left_out_where_something_exact_is_found() -> None:
    words = "How to polish the surface of a tool?"
    assert "def polish" in prompt_text.show_contexts(ranked(words, ""))
    assert "def polish" not in prompt_text.show_contexts(ranked(f"{words} See `align_right`", ""))


def test_no_line_is_shown_twice() -> None:
    made = ranked("`Attention.soften`, `Attention.forward`, `align_right`", LONG_FRAME)
    lines = [
        (chunk.path, at)
        for each in made
        for chunk in each.chunks
        for at in range(chunk.start, chunk.end + 1)
    ]
    assert len({path for path, _ in lines}) > 1
    assert len(lines) == len(set(lines))


def test_the_reading_of_a_model_leads_to_what_it_names() -> None:
    issue = Issue(title="It is wrong", body="Somehow.", repository="o/net")
    bug = reading_issue.read_issue(issue)
    assert "moved = tokens" not in prompt_text.show_contexts(contexts.contexts(bug, issue, SHELF))
    refined = Interpretation(claim="c", api=("net.align_right",))
    made = contexts.contexts(bug, issue, SHELF, refined=refined)
    assert "moved = tokens" in prompt_text.show_contexts(made[:1])
    placed = CrashSignature(exception="ValueError", frame="net/padding.py")
    refined = Interpretation(claim="c", signature=placed)
    assert contexts.contexts(bug, issue, SHELF, refined=refined)[0].module == "net.padding"


def test_equal_reports_have_equal_contexts_and_an_empty_index_has_none() -> None:
    assert ranked("align tokens", "right") == ranked("align tokens", "right")
    issue = Issue(title="align", body="`x.y`")
    assert contexts.contexts(reading_issue.read_issue(issue), issue, FakeSourceIndex({})) == ()


def test_what_is_known_of_the_history_counts() -> None:
    issue = Issue(title="Something", body="")
    (known,) = SHELF.symbol("polish")
    (best, *_) = contexts.ranking(reading_issue.read_issue(issue), issue, SHELF, lineage=(known,))
    assert best.why == ("the history of the issue",)


def test_bodies_go_before_chunks() -> None:
    text = 'def f(a):\n    """F."""\n' + "\n".join(f"    b = {n}" for n in range(20))
    chunks = [Chunk(path=f"{n}.py", start=1, end=22, text=text) for n in range(3)]
    assert [chunk.end for chunk in fit_chunks(chunks, 66)] == [22, 22, 22]
    assert [chunk.end for chunk in fit_chunks(chunks, 30)] == [22], "a head alone is no help"
    assert [chunk.end for chunk in fit_chunks(chunks, 5)] == [5]
    assert size(fit_chunks(chunks, 1)) == 1


def test_a_chunk_within_another_is_shown_once() -> None:
    wide, inner = (
        Chunk(path="a", start=1, end=9, text="w", why=("x",)),
        Chunk(path="a", start=2, end=3, text="i", why=("y",)),
    )
    assert [(chunk.start, chunk.why) for chunk in merge_chunks([inner, wide])] == [(1, ("y", "x"))]


def test_names_of_code_are_told_from_words() -> None:
    issue = Issue(
        title="`net.Attention` fails with flash_attn",
        body="The errors and the model.fit() of MyModel, `mask`.\n\n### Versions\nfoo_bar: 1",
    )
    found = [name.text for name in index.names(reading_issue.read_issue(issue), issue)]
    assert found[0] == "net.Attention"
    assert {"flash_attn", "model.fit", "MyModel", "mask"} <= set(found)
    assert not {"foo_bar", "fails", "errors", "The"} & set(found)


def test_paths_are_matched_only_where_it_is_clear_which() -> None:
    files = ["a/util.py", "b/util.py", "a/one.py"]
    assert index.installed_file("src/a/util.py", files) == "a/util.py"
    assert index.installed_file("util.py", files) is None
    assert index.installed_file("one.py", files) == "a/one.py"
    assert index.installed_file("x/one.py", files) is None


def test_what_a_function_calls_is_shown_from_its_own_package_only():
    texts = {
        "net/a.py": "from other.tool import polish\nfrom net.b import soften\n\n\n"
        "def forward(x):\n    return polish(soften(x))\n",
        "net/b.py": "def soften(x):\n    return x\n",
        "other/tool.py": "def polish(surface):\n    return surface\n",
    }
    subject = Issue(title="wrong", body="`net.a.forward` is wrong.", repository="o/net")
    shelf = FakeSourceIndex(texts, main=("net",))
    made = contexts.contexts(reading_issue.read_issue(subject), subject, shelf)
    paths = {chunk.path for context in made for chunk in context.chunks}
    assert paths == {"net/a.py", "net/b.py"}


def shown_of(
    texts: dict[str, str], title: str, body: str = "", main: tuple[str, ...] = ("net",)
) -> str:
    """What a prompt shows of these sources for a report."""
    issue = Issue(title=title, body=body, repository="o/net")
    sources = FakeSourceIndex(texts, main=main)
    return prompt_text.show_contexts(
        contexts.contexts(reading_issue.read_issue(issue), issue, sources)
    )


SPLITTERS = {
    "net/split.py": """from net.base import Base


class Folds(Base):
    def __init__(self, n=5):
        self.n = n

    def parts(self, y):
        return self.make(y)

    def make(self, y):
        if self.n > len(y):
            raise ValueError(f"more folds ({self.n}) than members of any class")
        return [self.n]


class GroupFolds(Base):
    def parts(self, y):
        if len(y):
            raise ValueError(f"more folds ({y}) than members of any class")
        return "namesake"
""",
    "net/base.py": """class Base:
    def split(self, y):
        return self.run(y)

    def run(self, y):
        return self.parts(y)

    def parts(self, y):
        raise NotImplementedError
""",
}


def test_calls_are_followed_to_the_raise_through_the_base_and_back() -> None:
    program = (
        "```python\nfrom net.split import Folds\nfolds = Folds(n=9)\nfolds.split([1, 2])\n```\n"
    )
    body = f'{program}It says "more folds (9) than members of any class".'
    seen = shown_of(SPLITTERS, "Splitting fails", body)
    assert "return self.make(y)" in seen
    assert "if self.n > len(y):" in seen
    assert seen.index("if self.n > len(y):") < seen.index("Context 2") if "Context 2" in seen else 1
    assert "raise NotImplementedError" not in seen


MODELS = {
    "net/model.py": """from net.layers import Block, Dense


class Model:
    def __init__(self, config):
        self.blocks = ModuleList([Block(config) for _ in range(2)])
        self.pooler = Pooler(config) if config.pool else None

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.pooler(x)


class Pooler:
    def __init__(self, config):
        self.dense = Dense(config)

    def forward(self, x):
        return self.dense(x[:, 0])
""",
    "net/layers.py": """class Block:
    def forward(self, x):
        return x * 1.25


class Dense:
    def build(self, shape):
        self.width = shape[-1]

    def call(self, x):
        return x / self.scale

    @property
    def scale(self):
        return self.width ** 0.25
""",
}


def test_an_object_that_is_called_leads_to_its_forward_and_to_those_of_its_parts() -> None:
    program = "```python\nfrom net.model import Model\nmodel = Model(config).eval()\nprint(model(x))\n```\n"
    seen = shown_of(MODELS, "The pooled output of a model is wrong", program)
    for line in ("return self.pooler(x)", "return self.dense(x[:, 0])", "return x * 1.25"):
        assert line in seen
    seen = shown_of(MODELS, "`Dense` is wrong")
    for line in ("return x / self.scale", "self.width ** 0.25", "self.width = shape[-1]"):
        assert line in seen


ACCESS = {
    "net/box.py": """class Box:
    def __getitem__(self, key):
        return self.items[key - 1]

    def __setattr__(self, name, value):
        raise ValueError(f"{name} is fixed")

    def __getattr__(self, name):
        return self.wrapped.lookup(name)

    def __len__(self):
        return 7
""",
    "other/box.py": "class Other:\n    def wanted(self):\n        return 'namesake'\n",
}


@pytest.mark.parametrize(
    ("use", "line"),
    [
        ("box[1]", "return self.items[key - 1]"),
        ("box.size = 3", "is fixed"),
        ("box.wanted", "return self.wrapped.lookup(name)"),
        ("len(box)", "return 7"),
        ("Own()[0]", "return self.items[key - 1]"),
    ],
)
def test_operators_and_attributes_lead_to_what_answers_for_them(use: str, line: str) -> None:
    program = (
        f"```python\nfrom net.box import Box\nclass Own(Box):\n    pass\nbox = Box()\n{use}\n```\n"
    )
    seen = shown_of(ACCESS, "It is wrong", program)
    assert line in seen
    assert "namesake" not in seen


def test_a_decorator_leads_to_what_it_wraps_the_call_in() -> None:
    texts = {
        "net/api.py": "from net.checks import Checked, wrapped\n\n\n@wrapped\n@Checked(3)\n"
        "def train(x):\n    return x\n",
        "net/checks.py": "class Checked:\n    def __init__(self, most):\n        self.most = most\n\n"
        "    def __call__(self, function):\n        return lambda x: function(min(x, self.most))\n\n\n"
        "def wrapped(function):\n    def inner(x):\n        return function(x + 1)\n\n    return inner\n",
    }
    seen = shown_of(texts, "`net.api.train` is wrong")
    assert "return lambda x: function(min(x, self.most))" in seen
    assert "return function(x + 1)" in seen


NAMESAKES = {
    "net/tokens.py": "class TokenizerBase:\n    def render(self, x):\n        return 'by tokens'\n",
    "net/process.py": "class ProcessorMixin:\n    def render(self, x):\n        return 'by processor'\n",
    "net/auto.py": "class AutoTokenizer:\n    @classmethod\n    def from_saved(cls, name):\n        return load(name)\n",
}


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("`render` in tokens.py is wrong", ""),
        ("`TokenizerBase` and its `render` are wrong", ""),
        (
            "`render` is wrong",
            (
                "```python\nfrom net.auto import AutoTokenizer\n"
                "t = AutoTokenizer.from_saved('x')\nt.render('y')\n```"
            ),
        ),
    ],
)
def test_of_namesakes_the_one_of_the_named_file_or_class_is_shown(title: str, body: str) -> None:
    seen = shown_of(NAMESAKES, title, body)
    assert "by tokens" in seen
    assert "by processor" not in seen


def test_a_longer_name_that_holds_the_word_is_no_match() -> None:
    texts = {
        "net/beta.py": "class Beta:\n    def sample(self):\n        return 'beta'\n",
        "net/binomial.py": "class BetaBinomial:\n    def sample(self):\n        return 'binomial'\n",
        "other/beta.py": "class Beta:\n    def sample(self):\n        return 'of a dependency'\n",
    }
    body = "```python\nfrom net.beta import Beta\nBeta().sample()\n```"
    seen = shown_of(texts, "Sampling of `Beta` is wrong", body)
    assert "return 'beta'" in seen
    assert "binomial" not in seen
    assert "of a dependency" not in seen


def test_the_raise_of_an_exception_of_the_package_is_followed_to() -> None:
    texts = {
        "net/run.py": "from net.steps import first\n\n\ndef run(x):\n    return first(x)\n",
        "net/steps.py": "from net.checks import fits\n\n\ndef first(x):\n    return fits(x)\n",
        "net/checks.py": "class SizeError(Exception):\n    pass\n\n\ndef fits(x):\n    if x > 3:\n"
        "        raise SizeError(x)\n    return x\n",
        "net/other.py": "def size():\n    raise SizeError('namesake')\n",
    }
    seen = shown_of(texts, "`net.run.run` throws a SizeError")
    assert "if x > 3:" in seen
    assert "namesake" not in seen


def test_what_tells_nothing_is_not_shown() -> None:
    texts = {
        "net/layer.py": "# Copyright of somebody\nimport os\n\nfrom net.base import Base, published_export\n\n"
        "SCALE_TABLE = {'wide': 3}\n\n\n"
        '@published_export(\n    "net.Layer",\n)\nclass Layer(Base):\n    """A layer."""\n\n'
        "    def scale(self, x):\n        # one\n        # two\n        # three\n        # four\n"
        "        return x * SCALE_TABLE['wide']\n",
        "net/base.py": 'class Base:\n    """A base."""\n\n    def build(self):\n        """Build it."""\n'
        "        raise NotImplementedError\n",
    }
    seen = shown_of(texts, "`Layer.scale` and `SCALE_TABLE` are wrong")
    assert "return x * SCALE_TABLE['wide']" in seen
    assert "class Layer(Base):" in seen
    assert "SCALE_TABLE = {'wide': 3}" in seen
    for waste in ("Copyright", "import", "export", "A layer", "Build it", "A base", "# four"):
        assert waste not in seen, waste


def test_words_lead_into_the_package_itself_and_into_nothing_that_it_carries_along() -> None:
    words = "def polish(surface):\n    return surface\n"
    texts = {
        "net/_vendor/tool.py": words,
        "other/tool.py": words,
        "net/own.py": "def surfaces(x):\n    return 'own'\n",
    }
    seen = shown_of(texts, "How does one polish surfaces?")
    assert "return 'own'" in seen
    assert "_vendor" not in seen
    assert "other/tool.py" not in seen
    del texts["net/own.py"]
    assert "other/tool.py" in shown_of(texts, "How does one polish surfaces?")


def test_a_copy_in_another_module_is_not_shown_again() -> None:
    text = "def soften(x):\n    y = x * 3\n    return y\n"
    texts = {"net/a.py": text, "net/copied/a.py": text}
    assert shown_of(texts, "`soften` is wrong").count("y = x * 3") == 1


def test_a_long_body_is_cut_around_the_words_of_the_report() -> None:
    lines = [f"    total = step_{at}(total)" for at in range(300)]
    lines[222] = "    total = total * padding_share"
    texts = {"net/long.py": "\n".join(["def work(total):", *lines, "    return total", ""])}
    seen = shown_of(texts, "`work` gives a wrong share of padding")
    assert "total * padding_share" in seen
    assert "step_3(" not in seen


def test_functions_that_are_given_to_a_call_are_followed() -> None:
    texts = {
        "net/loss.py": "from net.core import Wrapper\n\n\ndef huber(x):\n    return x * 1.5\n\n\n"
        "class Huber(Wrapper):\n    def __init__(self):\n        super().__init__(huber, name='huber')\n",
        "net/core.py": "class Wrapper:\n    def __init__(self, function, name):\n"
        "        self.function = function\n\n    def call(self, x):\n        return self.function(x)\n",
    }
    assert "return x * 1.5" in shown_of(texts, "`Huber` is wrong")


@pytest.mark.parametrize(
    "head", ["def make(x) -> Box:\n    return build(x)", "def make(x):\n    return Box(x)"]
)
def test_methods_of_what_a_function_returns_are_those_of_its_class(head: str) -> None:
    texts = {
        "net/make.py": f"from net.box import Box\n\n\n{head}\n",
        "net/box.py": "class Box:\n    def merge(self):\n        return 'of the box'\n",
        "net/other.py": "class Other:\n    def merge(self):\n        return 'namesake'\n",
    }
    program = "```python\nfrom net.make import make\nbox = make(3)\nbox.merge()\n```"
    seen = shown_of(texts, "It does not merge", program)
    assert "of the box" in seen
    assert "namesake" not in seen


def test_of_an_object_that_is_handed_on_the_methods_that_fit_the_report_are_shown() -> None:
    texts = {
        "net/pruners.py": "class Percentile:\n    def prune(self, trial):\n        return trial.value > 0.5\n\n"
        "    def describe(self):\n        return 'percentile'\n\n\n"
        "class Median(Percentile):\n    def __init__(self, startup=1):\n        self.startup = startup\n",
        "net/study.py": "class Study:\n    def __init__(self, pruner):\n        self.pruner = pruner\n",
    }
    program = "```python\nfrom net.pruners import Median\nfrom net.study import Study\nStudy(Median(startup=3))\n```"
    assert "return trial.value > 0.5" in shown_of(
        texts, "`Median` prunes a trial with nan", program
    )


def test_what_is_iterated_over_leads_to_its_iterator() -> None:
    texts = {"net/shard.py": "class Shard:\n    def __iter__(self):\n        return self.some()\n\n"
        "    def some(self):\n        yield 3 // 2\n\n    def other(self):\n        return 'other'\n"}  # fmt: skip
    program = "```python\nfrom net.shard import Shard\nshard = Shard()\nprint(list(shard))\n```"
    assert "yield 3 // 2" in shown_of(texts, "It repeats", program)


def test_what_raises_in_another_module_is_shown_with_what_is_named() -> None:
    texts = {
        "net/study.py": "from net.storage import Storage\n\n\nclass Study:\n"
        "    def __init__(self, storage: Storage):\n        self._storage = storage\n\n"
        "    @property\n    def best(self):\n        return self._storage.best_of(3)\n",
        "net/storage.py": "class Storage:\n    def best_of(self, n):\n        if n > 2:\n"
        "            raise ValueError('No trials are completed yet.')\n        return n\n",
    }
    body = 'The property says "No trials are completed yet."'
    seen = shown_of(texts, "`Study.best` raises", body)
    assert "if n > 2:" in seen.partition("Context 2")[0]


def test_a_thought_that_names_something_keeps_its_context_in_sight() -> None:
    one, two, three = (
        Context(
            rank=rank,
            title="t",
            chunks=(
                Chunk(path=f"{rank}.py", start=1, end=1, text=f"def {name}(self): 1", kind="method", name=f"m.{name}"),
            ),
        )
        for rank, name in ((1, "Box.one"), (2, "Box.two"), (3, "Box.twofold"))
    )  # fmt: skip
    notebook = prompt_text.Notebook((one, two, three))
    notebook.answered(1, "Box.two calls what fails.")
    assert [context.rank for context in notebook.contexts] == [1, 2]


def test_what_a_model_looks_up_has_its_docstrings_also_where_a_context_left_them_out():
    text = TEXTS["net/attention.py"]
    lines = text.split("\n")
    shown = Chunk(path="net/attention.py", start=5, end=14, text="\n".join(lines[4:14]))
    notebook = prompt_text.Notebook(contexts=(Context(rank=1, title="x", chunks=(shown,)),))
    assert "Much more." not in notebook.sources()
    wish = ReadAction(path="net/attention.py", start=5, end=16)
    notebook.look_up(None, wish, {"net/attention.py": text.encode()})
    assert notebook.sources().count("Much more.") == 1
    assert notebook.sources().count("class Attention") == 1


def test_two_long_bodies_that_count_alike_share_the_room():
    rows = "\n".join(f"    total += {n}" for n in range(120))
    one, other = (
        Chunk(path="a.py", start=start, end=start + 120, text=f"def {name}(total):\n{rows}",
              kind="function", name=f"a.{name}", score=score, focus=start + 60)
        for name, start, score in (("one", 1, 10.0), ("other", 200, 9.0))
    )  # fmt: skip
    alike = fit_chunks((one, other), 90)
    assert {piece.name for piece in alike} == {"a.one", "a.other"}
    assert size(alike) <= 92
    alone = fit_chunks((one, other.model_copy(update={"score": 3.0})), 90)
    assert {piece.name for piece in alone} == {"a.one"}


def test_the_repositorys_lines_that_a_traceback_names_come_first():
    texts = {
        "nets.py": "def build(size):\n    rows = [0] * size\n    return rows[size]\n",
        "train.py": "from nets import build\n\n\ndef main():\n    print(build(3))\n\n\nmain()\n",
        "other.py": "def build_other(size):\n    return size\n",
    }
    shelf = FakeSourceIndex(texts, main=("nets", "train", "other"), origin="clone")
    body = (
        "```\nTraceback (most recent call last):\n"
        '  File "/home/me/repo/train.py", line 5, in main\n    print(build(3))\n'
        '  File "/home/me/repo/nets.py", line 3, in build\n    return rows[size]\n'
        "IndexError: list index out of range\n```\n"
    )
    issue = Issue(title="It fails", body=body, repository="acme/repo")
    bug = reading_issue.read_issue(issue)
    assert [chunk.name for chunk in contexts.ranking(bug, issue, shelf)[:2]] == [
        "nets.build",
        "train.main",
    ]


def test_a_class_of_a_dependency_does_not_come_before_the_package_itself() -> None:
    """Two classes of one name count less each, but they are what the report is about."""
    texts = {
        "net/tree.py": "class Explain:\n    def __init__(self, model):\n        raise ValueError(model)\n",
        "net/pytree.py": "class Explain:\n    def __init__(self, model):\n        self.model = model\n",
        "other/boost.py": "class Booster:\n    def __init__(self, depth=3):\n        self.depth = depth\n",
    }
    shelf = FakeSourceIndex(texts, main=("net",))
    issue = Issue(
        title="ImportError with the new version",
        body="There is an issue in the initialization of the Explain.\n\nCode:\n"
        "from net import Explain\nfrom other import Booster\n\nmodel = Booster()\n"
        "explainer = Explain(model=loaded.model)\n",
        repository="o/net",
    )
    made = contexts.contexts(reading_issue.read_issue(issue), issue, shelf)
    assert made[0].module.startswith("net.")


TABLES = {
    "net/scales.py": """import logging

LOGGER = logging.getLogger(__name__)
FACTORS = {
    "small": 0.5,
    "large": 2,
}
LIMIT: float = 8.0
UNUSED = [1, 2, 3]


def scale(kind, value):
    LOGGER.debug(kind)
    return min(FACTORS[kind] * value, LIMIT)
""",
}


def test_tables_and_constants_of_the_module_are_shown_with_what_uses_them() -> None:
    sources = FakeSourceIndex(TABLES, main=("net",))
    prompt = shown(report("`net.scales.scale` gives twice as much for large."), sources)
    assert '"large": 2,' in prompt
    assert "LIMIT: float = 8.0" in prompt
    assert "UNUSED" not in prompt
    assert "LOGGER =" not in prompt
    assert "[4-7: scale uses it]" in prompt


def test_what_only_shares_words_is_left_out_where_anything_is_named() -> None:
    """Of a report that names a method of several classes, too."""
    texts = {
        "net/a.py": "class A:\n    def polish(self):\n        return 1\n\n\nclass B:\n    def polish(self):\n        return 2\n",
        "net/wood.py": "def surface_of_wood(grain):\n    return grain + 1\n",
    }
    sources = FakeSourceIndex(texts, main=("net",))
    body = "The surface of the wood has no grain after `polish`."
    assert "surface_of_wood" not in shown(report(body), sources)
    assert "surface_of_wood" in shown(report(body.replace("`polish`", "it")), sources)


def report(body: str) -> Issue:
    return Issue(title="the surface of wood", body=body)


def shown(subject: Issue, sources: FakeSourceIndex) -> str:
    bug = reading_issue.read_issue(subject)
    return prompt_text.show_contexts(contexts.contexts(bug, subject, sources))


OBJECTS = FakeSourceIndex(
    {
        "dist/base.py": "class Base:\n"
        "    def pmf(self, k):\n"
        "        if isinstance(self, Sample):\n            return 0\n"
        "        return self._pmf(k)\n\n"
        "    def _pmf(self, k):\n        return self._cdf(k) - self._cdf(k - 1)\n\n\n"
        "class Sample(Base):\n"
        "    def __init__(self, values):\n        self.values = values\n",
        "dist/coins.py": "from dist.base import Base\n\n\n"
        "class coin_gen(Base):\n"
        "    def _pmf(self, k):\n        return 0.5 + k\n\n\n"
        'coin = coin_gen(name="coin")\n',
        "dist/dice.py": "class dice:\n    def pmf(self, k):\n        return 1 / 6\n",
        "dist/checks.py": "def check(axis):\n"
        '    """Check it.\n\n    Examples\n    --------\n'
        "    Stops with: the axis is out of bounds here\n"
        '    """\n'
        "    return axis\n\n\n"
        "def stop(axis):\n"
        '    raise ValueError("the axis is out of bounds here")\n',
    },
    main=("dist",),
)


def names_shown(title: str, body: str = "") -> list[str]:
    issue = Issue(title=title, body=body, repository="o/dist")
    bug = reading_issue.read_issue(issue)
    return [row.name for row in contexts.ranking(bug, issue, OBJECTS)]


def test_an_object_that_a_module_makes_leads_to_the_methods_of_its_class() -> None:
    names = names_shown("`dist.coin.pmf` is wrong for 0.5")
    assert names[0] == "dist.base.Base.pmf"
    assert "dist.coins.coin_gen._pmf" in names
    assert "dist.dice.dice.pmf" not in names


def test_a_class_of_which_only_the_kind_is_asked_is_not_called() -> None:
    names = names_shown("`Base.pmf` is wrong for 0.5")
    assert "dist.base.Base._pmf" in names
    assert "dist.base.Sample.__init__" not in names


def test_words_of_a_message_in_an_example_raise_nothing() -> None:
    names = names_shown("It stops", "ValueError: the axis is out of bounds here")
    assert "dist.checks.stop" in names
    assert "dist.checks.check" not in names


def test_the_name_of_the_package_and_of_pythons_modules_lead_nowhere() -> None:
    texts = {"dist/a.py": "import sys\n\nif sys.version_info > (3, 12):\n    raise RuntimeError\n"}
    sources = FakeSourceIndex({**texts, "dist/b.py": "NAME = 'DIST of Dist'\n"}, main=("dist",))
    issue = Issue(
        title="It breaks",
        body="In `Dist` it is `sys.version_info` that counts.",
        repository="o/dist",
    )
    ranked_chunks = contexts.ranking(reading_issue.read_issue(issue), issue, sources)
    assert not [row for row in ranked_chunks if any("holds" in why for why in row.why)]


def test_a_function_of_another_package_is_no_namesake_of_the_packages_own() -> None:
    texts = {
        "dist/fit.py": "import numpy as np\n\n\ndef fit(x):\n    return np.squareroot(x)\n",
        "dist/links.py": "class squareroot:\n    def __init__(self):\n        self.power = 0.5\n",
    }
    issue = Issue(title="`fit` is wrong", body="It fails.", repository="o/dist")
    sources = FakeSourceIndex(texts, main=("dist",))
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, sources)
    assert [row.name for row in rows] == ["dist.fit.fit"]


def test_a_word_that_is_rare_in_the_package_counts_whatever_its_dependencies_hold() -> None:
    texts = {
        "dist/fit.py": "def fit(x):\n    return x\n\n\ndef walk(x, step_size=1):\n"
        "    return x + step_size\n",
        "base/many.py": "\n\n".join(
            f"def step_{n}(step_size):\n    return step_size + {n}\n" for n in range(7)
        ),
    }
    issue = Issue(title="`step_size` is ignored by `dist.fit`", body="", repository="o/dist")
    sources = FakeSourceIndex(texts, main=("dist",))
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, sources)
    assert "dist.fit.walk" in [row.name for row in rows]
    assert not [row for row in rows if row.package == "base"]


def test_what_a_long_function_calls_has_room_beside_it() -> None:
    passing = "\n".join(f"    first_{n} = n + {n}" for n in range(80))
    texts = {
        "net/plot.py": "class Plotter:\n    def __init__(self, data):\n        self.data = data\n\n"
        "    def draw_bars(self, count):\n"
        + "\n".join(f"        bar_{n} = count" for n in range(100))
        + "\n        return count\n\n\n"
        f"def bars(n):\n    plotter = Plotter(n)\n{passing}\n    return plotter.draw_bars(n)\n"
    }
    issue = Issue(title="`bars` draws too many", body="It never ends.", repository="o/net")
    bug = reading_issue.read_issue(issue)
    made = contexts.contexts(bug, issue, FakeSourceIndex(texts), 124)
    seen = prompt_text.show_contexts(made[:1])
    assert "return plotter.draw_bars(n)" in seen
    assert "def draw_bars(self, count):" in seen
    assert "bar_5 = count" in seen
    assert sum(size(each.chunks) for each in made) <= 140


def test_an_object_that_lacks_an_attribute_leads_to_where_its_class_gives_them() -> None:
    texts = {
        "net/module.py": "class Module:\n    def __post_init__(self):\n        self.bound = False\n\n"
        "    def apply(self, x):\n        return x\n"
    }
    body = "`net.module.Module` says `AttributeError: 'Mine' object has no attribute 's1'`"
    assert "self.bound = False" in shown_of(texts, "A call fails", body)
    assert "self.bound = False" not in shown_of(texts, "A call fails", "`net.module.Module.apply`")


def test_the_words_of_the_reading_choose_among_what_is_called() -> None:
    texts = {
        "net/a.py": "def smooth(x):\n    return x + 1\n\n\ndef bend(x):\n    return x * 2\n\n\n"
        "def resize(x):\n    smooth(x)\n    return bend(x)\n"
    }
    issue = Issue(title="`resize` is wrong", body="", repository="o/net")
    bug = reading_issue.read_issue(issue)
    refined = Interpretation(claim="resize gives its image to bend, which doubles it")
    rows = contexts.ranking(bug, issue, FakeSourceIndex(texts), refined=refined)
    assert [row.name for row in rows] == ["net.a.resize", "net.a.bend", "net.a.smooth"]


FLOWS = FakeSourceIndex(
    {
        "flow/activations.py": "def tanh(x):\n    return x\n",
        "flow/frame.py": "class Frame:\n    def bool(self):\n        return True\n\n"
        "    def __init__(self):\n        self.rows = []\n",
        "flow/net.py": "class Net:\n    def __init__(self, wide):\n        self.wide = wide\n",
        "packer/tests/test_wheel.py": "def test_wheel():\n"
        "    raise ValueError('the wheel of the cart is broken')\n",
    },
    main=("flow",),
)


@pytest.mark.parametrize("name", ["np.tanh", "numpy.tanh", "`np.bool`", "__init__()"])
def test_a_word_that_another_packages_name_shares_leads_nowhere(name: str) -> None:
    issue = Issue(title="It stops", body=f"It says that {name} is wrong.", repository="o/flow")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FLOWS)
    assert {why for row in rows for why in row.why} <= {"the words of the report"}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("`flow.tanh` is wrong", "flow.activations.tanh"),
        ("`frame.bool` is wrong", "flow.frame.Frame.bool"),
        ("`Net` says that __init__() got an argument", "flow.net.Net.__init__"),
    ],
)
def test_a_word_in_its_own_package_still_leads_to_its_definition(body: str, shown: str) -> None:
    issue = Issue(title="It stops", body=body, repository="o/flow")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FLOWS)
    assert shown in [row.name for row in rows]
    assert "flow.frame.Frame.__init__" not in [row.name for row in rows]


def test_the_tests_of_another_package_are_never_shown() -> None:
    for body in ("ValueError: the wheel of the cart is broken", "A wheel of a cart in a test."):
        issue = Issue(title="The wheel of the cart", body=body, repository="o/flow")
        rows = contexts.ranking(reading_issue.read_issue(issue), issue, FLOWS)
        assert "packer" not in [row.package for row in rows]


PROGRAMS = {
    "run/train.py": "import sys\nimport walker.steps\nfrom walker import gait\n\nimport argparse\n\n\n"
    "def main(args):\n    return args\n\n\n"
    "def parse():\n    parser = argparse.ArgumentParser()\n"
    "    parser.add_argument('--stride', type=int)\n    return parser.parse_args()\n\n\n"
    "LIMIT = main(parse())\n",
}


def clone_shown(title: str, body: str, refined: Interpretation | None = None) -> str:
    issue = Issue(title=title, body=body, repository="o/run")
    sources = FakeSourceIndex(PROGRAMS, origin="clone")
    bug = reading_issue.read_issue(issue)
    return prompt_text.show_contexts(contexts.contexts(bug, issue, sources, refined=refined))


FAILED_IMPORT = """```
Traceback (most recent call last):
  File "/home/me/run/train.py", line 2, in <module>
    import walker.steps
ModuleNotFoundError: No module named 'walker'
```
"""


@pytest.mark.parametrize(
    "body",
    [
        FAILED_IMPORT,
        "It stops at line 3 of train.py.",
        "It stops in run/train.py:3 already.",
        'File "/home/me/run/train.py", line 2, in <module>\nImportError: no steps',
        "from walker import gait ImportError: cannot import name 'gait'",
    ],
)
def test_an_import_that_fails_is_shown_with_those_beside_it(body: str) -> None:
    seen = clone_shown("It does not start", body)
    assert "import walker.steps" in seen
    assert "from walker import gait" in seen


def test_the_line_that_the_claim_names_is_shown() -> None:
    refined = Interpretation(claim="run/train.py line 2 imports a module that is not there")
    assert "import walker.steps" in clone_shown("It does not start", "Help.", refined)
    assert "import walker.steps" not in clone_shown("It does not start", "See train.py.")


@pytest.mark.parametrize("body", ["`python walk.py --stride 3` says no.", "I ran walk.py."])
def test_the_options_of_the_program_that_is_run_are_shown(body: str) -> None:
    texts = {
        "walk.py": "import argparse\n\nimport gait\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--stride', type=int)\nargs = parser.parse_args()\n\n\n"
        "def main():\n    return gait.walk(args)\n",
        "gait.py": "def walk(args):\n    return args.stride\n",
    }
    issue = Issue(title="It stops", body=body, repository="o/run")
    bug = reading_issue.read_issue(issue)
    for origin, is_shown in (("clone", True), ("installed", False)):
        made = contexts.contexts(bug, issue, FakeSourceIndex(texts, origin=origin))
        assert ("add_argument('--stride'" in prompt_text.show_contexts(made)) is is_shown


def test_the_repositorys_own_files_come_before_installed_ones() -> None:
    own, installed, faint = (
        Chunk(path=path, start=1, end=1, text="x", score=score, origin=origin)
        for path, score, origin in (
            ("train.py", 3.0, "clone"),
            ("torch/nn.py", 9.0, "installed"),
            ("tools.py", 0.1, "clone"),
        )
    )
    groups = contexts.by_module([installed, own, faint])
    assert [path for path, _ in groups] == ["train.py", "torch/nn.py", "tools.py"]


KERAS = {
    "flow/python/keras/engine/base_layer.py": "class Layer:\n    def __init__(self):\n"
    "        self.built = False\n\n    def compute_shape(self, shape):\n"
    "        return self.build(None)\n",
    "flow/python/engine.py": "class Layer:\n    other = 1\n",
    "flow/contrib/many.py": "def norm(x):\n    return Layer(x)\n",
}


def test_a_class_that_is_published_elsewhere_is_shown_not_what_holds_its_name() -> None:
    body = "```python\nimport flow as fl\nclass Mine(fl.keras.layers.Layer):\n    pass\n```\n"
    for text in (body, "`flow.keras.layers.Layer.compute_shape` is wrong."):
        issue = Issue(title="It is wrong", body=text, repository="o/flow")
        rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(KERAS))
        assert rows[0].path == "flow/python/keras/engine/base_layer.py"
        assert "flow/contrib/many.py" not in [row.path for row in rows]


def test_what_only_shares_a_message_is_not_shown_beside_the_repositorys_own_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = {
        "walk.py": "def walk(x):\n    return x\n",
        "lib/check.py": "def check(x):\n    raise ValueError('no module of that kind is here')\n",
    }
    sources = FakeSourceIndex(texts, main=("walk",))
    origins = {"walk.py": "clone", "lib/check.py": "installed"}
    find = sources.store.provenance
    monkeypatch.setattr(
        sources.store, "provenance", lambda path: find(path)._replace(origin=origins[path])
    )
    issue = Issue(
        title="`walk` stops",
        body="ValueError: no module of that kind is here",
        repository="o/walk",
    )
    made = contexts.contexts(reading_issue.read_issue(issue), issue, sources)
    assert [chunk.path for chunk in made[0].chunks] == ["walk.py"]


NOTEBOOK = """{
 "cells": [
  {
   "cell_type": "markdown",
   "source": [
    "The first."
   ]
  },
  {
   "cell_type": "code",
   "source": [
    "t = w + 1\\n",
    "\\n",
    "t = squash(t)\\n",
    "print(t)"
   ]
  }
 ]
}
"""


@pytest.mark.parametrize(
    ("body", "is_shown"),
    [
        ("`usage.ipynb` says `name 't' is not defined` at `t = squash(t)`.", True),
        ("In docs/usage.ipynb\n\n```python\nt = squash(t)\n```\n", True),
        ("`usage.ipynb` stops.", False),
        ("`other.ipynb` stops at `t = squash(t)`.", False),
    ],
)
def test_the_cell_with_a_quoted_statement_comes_first(body: str, is_shown: bool) -> None:
    issue = Issue(title="It stops", body=body)
    bug = reading_issue.read_issue(issue)
    tree = {"docs/usage.ipynb": NOTEBOOK.encode(), "docs/other.ipynb": b"{}"}
    other = Context(rank=1, title="other")
    made = contexts.with_notebooks((other,), issue, bug, tree)
    assert contexts.names_notebook(issue)
    assert [context.rank for context in made] == list(range(1, len(made) + 1))
    assert made[-1].title == "other"
    assert len(made) == 1 + is_shown
    if is_shown:
        (piece,) = made[0].chunks
        assert (piece.path, piece.start, piece.end) == ("docs/usage.ipynb", 12, 15)
        seen = prompt_text.show_contexts(made)
        assert "[12-15: holds" in seen
        assert '"t = squash(t)\\n",' in seen
        assert "The first." not in seen


def test_a_function_that_begins_with_long_documentation_is_followed_too() -> None:
    words = "\n".join(f"    Line {n} of the words." for n in range(130))
    steps = "\n".join(f"    step_{n} = x + {n}" for n in range(110))
    texts = {
        "net/bend.py": f'def bend(x):\n    """Bend.\n\n{words}\n    """\n{steps}\n'
        "    return float(x)\n\n\ndef smooth(x):\n    return x\n\n\n"
        "def resize(x):\n    smooth(x)\n    return bend(x)\n"
    }
    issue = Issue(title="`resize` is wrong", body="It is due to `bend`?", repository="o/net")
    bug = reading_issue.read_issue(issue)
    sources = FakeSourceIndex(texts)
    refined = Interpretation(claim="resize gives x to bend, which makes it a float")
    rows = contexts.ranking(bug, issue, sources, refined=refined)
    assert "resize calls it" in next(row for row in rows if row.name == "net.bend.bend").why
    (caller,) = sources.symbol("net.bend.resize")
    assert "return float(x)" in sources.callees(caller)[1].text


def test_what_only_a_comment_says_raises_nothing() -> None:
    texts = {
        "net/a.py": "def quiet(x):\n    # raise ValueError('no room for the pad here')\n"
        "    return x\n\n\ndef pad(x):\n    raise ValueError('no room for the pad here')\n"
    }
    issue = Issue(title="It stops", body="ValueError: no room for the pad here", repository="o/n")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
    assert [row.name for row in rows if "holds words of the message" in row.why] == ["net.a.pad"]


def test_a_constructor_is_meant_only_of_a_class_that_the_report_names() -> None:
    texts = {"net/a.py": "class CvSplit:\n    def __init__(self, folds):\n        self.n = folds\n"}
    body = "TypeError: __init__() got an unexpected keyword argument 'on_train'"
    for title, is_meant in (("RandomizedSearchCv stops", False), ("CvSplit stops", True)):
        issue = Issue(title=title, body=body, repository="o/net")
        rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
        assert any("`__init__` in the text" in row.why for row in rows) is is_meant


def test_a_base_leads_to_the_methods_that_only_its_subclass_has() -> None:
    """Also through one that gives the object back, as `fit` does."""
    texts = {
        "net/mixin.py": "class Mixin:\n    def fit_transform(self, x, y):\n"
        "        return self.fit(x, y).transform(x)\n",
        "net/mean.py": "from net.mixin import Mixin\n\n\nclass MeanEncoder(Mixin):\n"
        "    def fit(self, x, y):\n        self.mean = len(y)\n        return self\n\n"
        "    def transform(self, x):\n        return [self.mean for _ in x]\n",
        "net/other.py": "class Other:\n    def fit(self, x, y):\n        return 'namesake'\n",
    }
    seen = shown_of(texts, "`net.mean.MeanEncoder.fit_transform` gives the wrong mean")
    assert "self.mean = len(y)" in seen
    assert "return [self.mean for _ in x]" in seen
    assert "namesake" not in seen


def test_an_exception_that_holds_the_words_leads_to_who_raises_it() -> None:
    texts = {
        "net/errors.py": "class FrozenError(Exception):\n    def __init__(self, name):\n"
        "        super().__init__(f'Cannot set {name}: the module instance is frozen now')\n",
        "net/module.py": "from net import errors\n\n\nclass Module:\n"
        "    def __setattr__(self, name, value):\n        if self.frozen and name == 'rate':\n"
        "            raise errors.FrozenError(name)\n",
    }
    body = "It says `Cannot set rate: the module instance is frozen now`."
    issue = Issue(title="An assignment fails", body=body, repository="o/net")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
    assert rows[0].name == "net.module.Module.__setattr__"


def test_a_name_that_an_object_lacks_leads_to_who_asks_for_it() -> None:
    texts = {
        "net/loop.py": "from net.draw import seed\n\n\ndef fit(state):\n    return seed(state)\n",
        "net/draw.py": "def seed(state):\n    return state.integers(2**31 - 1)\n",
    }
    body = "`net.loop.fit` says `AttributeError: 'RandomState' object has no attribute 'integers'`"
    issue = Issue(title="It stops", body=body, repository="o/net")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
    reasons = {row.name: row.why for row in rows}
    assert "holds words of the message" in reasons["net.draw.seed"]
    assert "holds words of the message" not in reasons["net.loop.fit"]


def test_a_module_that_wraps_a_function_of_another_package_comes_before_that() -> None:
    texts = {
        "grad/math/linear.py": "import grad.math as gm\nfrom grad.core import define\n\n\n"
        "def slope(answer, x):\n    return gm.linear.norm(x) / answer\n\n\n"
        "define(gm.linear.norm, slope)\n",
        "plain/linear.py": "def norm(x):\n    return sum(x)\n",
    }
    issue = Issue(title="`grad.math.linear.norm` gives nan at 0", body="", repository="o/grad")
    sources = FakeSourceIndex(texts, main=("grad",))
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, sources)
    assert rows[0].path == "grad/math/linear.py"


def test_pythons_words_on_a_call_lead_to_no_namesake() -> None:
    words = "__init__() missing 1 required positional argument: 'layers'"
    texts = {"net/bind.py": f"def bind(x):\n    raise TypeError({words!r})\n"}
    issue = Issue(title="It stops", body=f"TypeError: {words}", repository="o/net")
    rows = contexts.ranking(reading_issue.read_issue(issue), issue, FakeSourceIndex(texts))
    assert not any("holds words of the message" in row.why for row in rows)


def test_what_only_stores_or_gives_back_an_attribute_takes_no_room() -> None:
    stores = "".join(f"        self.{name} = {name}\n" for name in "abcdef")
    texts = {
        "net/layer.py": f"class Layer:\n    def __init__(self, a, b, c, d, e, f):\n{stores}\n"
        "    @property\n    def width(self):\n        return self._width\n\n"
        "    def scale(self, x):\n        return x * self.width\n",
    }
    seen = shown_of(texts, "`net.layer.Layer` and `net.layer.Layer.scale` are wrong")
    assert "return x * self.width" in seen
    assert "def __init__(self, a, b, c, d, e, f):" in seen
    assert "self.a = a" not in seen
    assert "return self._width" not in seen


def test_a_weaker_piece_takes_less_room() -> None:
    def piece(name: str, start: int, score: float) -> Chunk:
        lines = [f"def {name}(x):", *(f"    x = x + {at}" for at in range(58)), "    return x"]
        return Chunk(
            path="net/a.py",
            start=start,
            end=start + 59,
            kind="function",
            name=f"net.a.{name}",
            text="\n".join(lines),
            package="net",
            score=score,
        )

    pieces = (piece("named", 1, 10.0), piece("helper", 100, 6.0), piece("deciding", 200, 5.0))
    shown = fit_chunks(pieces, 130)
    assert {chunk.name for chunk in shown} == {piece.name for piece in pieces}
    assert sum(size([chunk]) for chunk in shown if chunk.name == "net.a.named") == 60
