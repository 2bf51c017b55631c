"""What a model that writes a program for a repository sees of the program itself."""

from bot.issues.reading.issue import read_issue
from bot.issues.search.program_files import program_pieces, with_program
from bot.kernel.bug import Issue
from bot.kernel.environment import Chunk, Context

MAIN = """import json
from utils.config import rate
settings = json.load(open("settings.json"))
{middle}
if __name__ == "__main__":
    train(settings)
"""
TREE = {
    "train.py": MAIN.format(middle="x = 1\n" * 60).encode(),
    "settings.json": b'{"epochs": 3}\n',
    "utils/config.py": b"rate = 0.1\n",
    "utils/layers.py": b"def layer(): ...\n",
    "other.json": b"{}\n",
    "tests/test_a.py": b"def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 2\n",
}


def pieces(body):
    issue = Issue(title="It fails", body=body)
    return program_pieces(issue, read_issue(issue), TREE)


def test_the_end_of_a_program_and_the_small_files_that_it_reads_are_shown():
    shown = pieces("```\n$ python train.py\nKeyError: 'lr'\n```\n")
    assert [(one.path, one.text.split("\n")[0]) for one in shown] == [
        ("train.py", 'if __name__ == "__main__":'),
        ("utils/config.py", "rate = 0.1"),
        ("settings.json", '{"epochs": 3}'),
    ]
    assert shown[-1].why == ("`settings.json` in train.py",)


def test_the_test_that_a_report_names_is_shown():
    (shown,) = pieces("```\n$ pytest tests/test_a.py::test_two\nE assert 2\n```\n")
    assert shown.text == "def test_two():\n    assert 2"


def test_what_is_shown_already_is_not_shown_again():
    own = pieces("```\n$ python train.py\nKeyError: 'lr'\n```\n")
    whole = Chunk(path="train.py", start=1, end=99, text="", origin="clone")
    first = Context(rank=1, title="x", module="train", chunks=(whole,))
    assert [one.path for one in with_program((first,), own)[-1].chunks] == [
        "utils/config.py", "settings.json",
    ]  # fmt: skip
    assert with_program((first,), ()) == (first,)
