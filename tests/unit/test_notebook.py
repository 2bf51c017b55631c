"""What a model sees of its own looks, probes and runs in later questions."""

from __future__ import annotations

import pytest

from bot.issues.search import contexts
from bot.issues.search.prompt_text import Notebook
from bot.kernel.dialogue import ReadAction, SearchAction
from bot.kernel.environment import Chunk, Context
from tests.support.source_index import FakeSourceIndex

BODY = "\n".join(f"    step_{n}(x)" for n in range(90))
TEXTS = {
    "net/core.py": f'def align(x, pad_id=0):\n    """Align.\n\n    Much more.\n    """\n{BODY}\n'
    '    raise ValueError("no room for the pad")\n\n\ndef other(x):\n    return x\n',
    "net/words.py": "def room_for_pad(x):\n    '''No room.'''\n    return x\n",
}
SHELF = FakeSourceIndex(TEXTS)


def lines(wish: SearchAction | ReadAction) -> str:
    return "\n".join(piece.text for piece in contexts.look_up(SHELF, wish).pieces)


@pytest.mark.parametrize("query", ["align", "net.core.align", "pad_id", "`pad_id`", "pad_id zzz"])
def test_a_search_finds_names_exactly(query: str) -> None:
    found = contexts.look_up(SHELF, SearchAction(query=query))
    assert {piece.path for piece in found.pieces} == {"net/core.py"}
    assert "def align(x, pad_id=0):" in lines(SearchAction(query=query))
    assert found.remark == ""


def test_a_search_for_the_words_of_a_message_shows_where_they_stand() -> None:
    seen = lines(SearchAction(query='"no room for the pad"'))
    assert "raise ValueError" in seen
    assert "def align(" in seen, "with the head of the function"
    assert "step_10(x)" not in seen, "cut around the hit"
    assert "room_for_pad" not in seen


def test_a_search_says_when_only_words_match() -> None:
    found = contexts.look_up(SHELF, SearchAction(query="pad a room"))
    assert found.pieces
    assert "nowhere as it is written" in found.remark
    found = contexts.look_up(SHELF, SearchAction(query="zebra"))
    assert "Nothing was found" in found.remark


def test_a_read_says_where_the_file_ends() -> None:
    ends = contexts.look_up(SHELF, ReadAction(path="net/words.py", start=1, end=50))
    assert "end of file: net/words.py has 3 lines" in ends.remark
    beyond = contexts.look_up(SHELF, ReadAction(path="net/words.py", start=9, end=50))
    assert "ends before that line" in beyond.remark
    assert "no file" in contexts.look_up(SHELF, ReadAction(path="net/no.py")).remark
    assert contexts.look_up(SHELF, ReadAction(path="net/core.py", start=1, end=5)).remark == ""


def notebook() -> Notebook:
    piece = Chunk(path="net/words.py", start=1, end=3, text=TEXTS["net/words.py"].rstrip())
    return Notebook((Context(rank=1, title="one", chunks=(piece,)),))


def test_a_piece_of_source_is_shown_once_and_stays_while_there_is_room() -> None:
    notes = notebook()
    for wish in (SearchAction(query="other"), ReadAction(path="net/core.py", start=98, end=99)):
        notes.look_up(SHELF, wish)
    notes.look_up(SHELF, ReadAction(path="net/words.py"))
    assert notes.sources().count("def other(x)") == 1
    assert notes.sources().count("def room_for_pad") == 1
    assert "def other" not in notes.history("", "")
    assert "search 'other'" in notes.history("", "")
    notes.answered(0, "")
    assert notes.sources().count("def other(x)") == 1, "the program may need it"


def test_looks_fill_no_more_than_their_room() -> None:
    notes = Notebook(())
    texts = {f"net/m{n}.py": f"def f{n}():\n{BODY}\n" for n in range(9)}
    for n in range(9):
        notes.look_up(FakeSourceIndex(texts), ReadAction(path=f"net/m{n}.py", start=1, end=91))
        notes.answered(0, "")
    assert "def f8" in notes.sources()
    assert "def f2" not in notes.sources()
    assert len(notes.sources().splitlines()) < 220


def test_of_what_is_superseded_a_line_is_left() -> None:
    notes = notebook()
    notes.tell("a probe\nwith much output", "a probe")
    notes.ran("the first run\nwith its output", "the first did not count")
    assert "much output" in notes.history("p = 1", "")
    notes.answered(1, "thought")
    assert "much output" not in notes.history("p = 1", "")
    assert "with its output" in notes.history("p = 1", ""), "the outcome of the last program stays"
    notes.ran("the second run", "the second did not count")
    told = notes.history("p = 2", "")
    assert "with its output" not in told
    assert "the first did not count" in told
    assert "the second run" in told
    assert "p = 2" in told


def test_a_twin_is_shown_by_its_difference_and_nothing_is_said_twice() -> None:
    notes = notebook()
    program = "import net\n\nx = net.pad(1, 2)\nprint(x)\n"
    told = notes.history(program, program.replace("1, 2", "1"))
    assert "3 x = net.pad(1, 2)\n4 print(x)" in told
    assert "- x = net.pad(1, 2)\n+ 3 x = net.pad(1)\n" in told
    assert told.count("print(x)") == 1
    assert "1 y = 2\n</outside" in notes.history(program, "y = 2\n"), "another program is whole"
    notes.tell("it is installed", "")
    notes.tell("not run")
    notes.tell("not run")
    assert notes.history("", "") == "it is installed\n\nnot run"
    notes.answered(0, "")
    assert notes.history("", "") == "not run"


def test_what_was_asked_for_is_shown_although_most_of_it_is_in_sight() -> None:
    text = "\n".join(f"step_{n} = {n}" for n in range(1, 101))
    known = Chunk(path="net/run.py", start=20, end=90, text="\n".join(text.splitlines()[19:90]))
    context = Context(rank=1, title="run", module="net.run", chunks=(known,))
    book = Notebook((context,))
    book.look_up(
        FakeSourceIndex({"net/run.py": text}), ReadAction(path="net/run.py", start=1, end=100)
    )
    told = book.sources()
    for n in (1, 19, 20, 90, 91, 100):
        assert told.count(f"step_{n} = {n}\n") == 1, n


def test_all_that_one_answer_asked_for_is_shown_whole_once() -> None:
    shelf = FakeSourceIndex({f"net/{n}.py": "\n".join(["x = 1"] * 120) for n in "abc"})
    notes = Notebook(contexts=())
    for name in "abc":
        notes.look_up(shelf, ReadAction(path=f"net/{name}.py", start=1, end=120))
    assert all(f"net/{name}.py" in notes.sources() for name in "abc")
    notes.answered(1, "")
    notes.look_up(shelf, ReadAction(path="net/a.py", start=1, end=10))
    assert "net/a.py" in notes.sources()
    assert "net/b.py" not in notes.sources(), "what was not asked for again makes room"


def test_the_lines_of_one_file_stand_in_its_order_without_blank_pieces() -> None:
    text = "first = 1\n\nsecond = 2\n\nthird = 3\n"
    shelf = FakeSourceIndex({"net/a.py": text, "net/b.py": "other = 1\n"})
    known = Chunk(path="net/a.py", start=3, end=3, text="second = 2")
    notes = Notebook((Context(rank=1, title="one", chunks=(known,)),))
    for path, start in (("net/a.py", 1), ("net/b.py", 1), ("net/a.py", 4)):
        notes.look_up(shelf, ReadAction(path=path, start=start, end=start + 1))
    seen = notes.sources()
    assert seen.index("first = 1") < seen.index("third = 3") < seen.index("other = 1")
    assert seen.count("net/a.py") == 2, "the looks in one fence, the context in another"
    notes.found = notes.found[-1:]
    notes.look_up(shelf, ReadAction(path="net/a.py", start=2, end=3))
    assert "2  \n" not in notes.sources()
