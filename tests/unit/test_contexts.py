"""From a report and a index to ranked contexts."""

from __future__ import annotations

import pytest

from bot.models.bug import Issue
from bot.models.environment import Chunk, Context
from bot.pipeline.reading import intake
from bot.pipeline.search import contexts
from bot.rules.code import pointers
from bot.rules.code.line_budget import fitted, merged, size
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
    return contexts.contexts(intake.read(issue), issue, SHELF, budget)


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
        assert sum(each.lines for each in made) <= max(budget, 120)
        for chunk in (chunk for each in made for chunk in each.chunks):
            lines = TEXTS[chunk.path].split("\n")[chunk.start - 1 : chunk.end]
            assert chunk.text.split("\n") == lines
            assert chunk.why


def test_the_reports_own_program_is_shown_as_such() -> None:
    made = ranked(
        "`align_right` is wrong",
        "```python\nfrom net import align_right\nprint(align_right([1, 2], 1))\n```",
    )
    own = [chunk for chunk in made[0].chunks if chunk.origin == "issue"]
    assert [chunk.text for chunk in own] == [
        "from net import align_right\nprint(align_right([1, 2], 1))"
    ]


def test_equal_reports_have_equal_contexts_and_an_empty_index_has_none() -> None:
    assert ranked("align tokens", "right") == ranked("align tokens", "right")
    issue = Issue(title="align", body="`x.y`")
    assert contexts.contexts(intake.read(issue), issue, FakeSourceIndex({})) == ()


def test_what_is_known_of_the_history_counts() -> None:
    issue = Issue(title="Something", body="")
    (known,) = SHELF.symbol("polish")
    (best, *_) = contexts.ranking(intake.read(issue), issue, SHELF, lineage=(known,))
    assert best.why == ("the history of the issue",)


def test_bodies_go_before_chunks() -> None:
    text = 'def f(a):\n    """F."""\n' + "\n".join(f"    b = {n}" for n in range(20))
    chunks = [Chunk(path=f"{n}.py", start=1, end=22, text=text) for n in range(3)]
    assert [chunk.end for chunk in fitted(chunks, 66)] == [22, 22, 22]
    assert [chunk.end for chunk in fitted(chunks, 30)] == [22, 2, 2]
    assert [chunk.end for chunk in fitted(chunks, 5)] == [2, 2]
    assert size(fitted(chunks, 1)) == 1


def test_a_chunk_within_another_is_shown_once() -> None:
    wide, inner = (
        Chunk(path="a", start=1, end=9, text="w", why=("x",)),
        Chunk(path="a", start=2, end=3, text="i", why=("y",)),
    )
    assert [(chunk.start, chunk.why) for chunk in merged([inner, wide])] == [(1, ("y", "x"))]


def test_names_of_code_are_told_from_words() -> None:
    issue = Issue(
        title="`net.Attention` fails with flash_attn",
        body="The errors and the model.fit() of MyModel, `mask`.\n\n### Versions\nfoo_bar: 1",
    )
    found = [name.text for name in pointers.names(intake.read(issue), issue)]
    assert found[0] == "net.Attention"
    assert {"flash_attn", "model.fit", "MyModel", "mask"} <= set(found)
    assert not {"foo_bar", "fails", "errors", "The"} & set(found)


def test_paths_are_matched_only_where_it_is_clear_which() -> None:
    files = ["a/util.py", "b/util.py", "a/one.py"]
    assert pointers.installed("src/a/util.py", files) == "a/util.py"
    assert pointers.installed("util.py", files) is None
    assert pointers.installed("one.py", files) == "a/one.py"
    assert pointers.installed("x/one.py", files) is None
