"""A message of Python's own failures without its class is a failure that a run can show."""

import pytest

from bot.issues.reading.issue import read_issue
from bot.kernel.bug import Issue


def read(title: str, body: str = "See the script.") -> list[tuple[str, str]]:
    subject = Issue(title=title, body=body, repository="acme/net")
    return [(row.exception, row.message) for row in read_issue(subject).tracebacks]


@pytest.mark.parametrize(
    ("title", "exception", "message"),
    [
        (
            "Module 'numpy' has no attribute 'float'",
            "AttributeError",
            "module 'numpy' has no attribute 'float'",
        ),
        (
            "'Net' object has no attribute 'size'",
            "AttributeError",
            "'Net' object has no attribute 'size'",
        ),
        (
            "cannot import name 'a' from 'b.c' (v2)",
            "ImportError",
            "cannot import name 'a' from 'b.c'",
        ),
        (
            "Run ends: fit() got an unexpected keyword argument 'x'",
            "TypeError",
            "fit() got an unexpected keyword argument 'x'",
        ),
        (
            "Unexpected keyword argument `size` in cell 3",
            "TypeError",
            "got an unexpected keyword argument 'size'",
        ),
        ("name 'K' is not defined in model.py", "NameError", "name 'K' is not defined"),
        ("Cell 2 gives `name 'K' is not defined`", "NameError", "name 'K' is not defined"),
    ],
)
def test_the_words_say_which_class_it_is(title: str, exception: str, message: str) -> None:
    assert read(title) == [(exception, message)]
    assert read("Training ends", f"Since today I get: {title}") == [(exception, message)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("NameError: name 'size' is not defined @ line 364 in `train.py`", "name 'size' is not defined"),
        ("AttributeError: 'Net' object has no attribute 'size' when I start it", "'Net' object has no attribute 'size'"),
        ("KeyError: 'size' in line 3", "'size' in line 3"),
        ("IndexError: list index out of range", "list index out of range"),
    ],
)  # fmt: skip
def test_where_it_happens_is_no_part_of_the_message(words: str, message: str) -> None:
    assert [row[1] for row in read("It fails", f"I get the error {words}")] == [message]
    assert [row[1] for row in read(words)] == [message]


def test_the_line_of_code_that_a_sentence_names_is_where_it_happens() -> None:
    body = "The second cell gives `name 't' is not defined` error at line `y = np.tanh(t)`."
    (row,) = read_issue(Issue(title="Typo", body=body)).tracebacks
    assert [frame.code for frame in row.frames] == ["y = np.tanh(t)"]


@pytest.mark.parametrize(
    "title",
    [
        "It should not raise: module 'a' has no attribute 'b'",
        "Clearer message instead of 'Net' object has no attribute 'size'",
        "The module has no attribute for sizes",
        "The name is not defined well",
    ],
)
def test_other_words_are_no_failure(title: str) -> None:
    assert read(title) == []


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('There is a name error in your code. No variable defined as "models" is there.', "models"),
        ("There is a name error in train.py. There `build` is not imported.", "build"),
        ("Nothing of it runs: `build` is not imported.", ""),
        ("A NameError, since the name is not defined.", ""),
    ],
)
def test_a_name_error_in_other_words_is_pythons(body: str, name: str) -> None:
    messages = [("NameError", f"name '{name}' is not defined")] if name else []
    assert [row for row in read("Typo", body) if "'" in row[1]] == messages


def test_a_traceback_goes_before_bare_words() -> None:
    body = (
        "```\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\nValueError: no rows\n```'
    )
    assert read("name 'K' is not defined", body) == [("ValueError", "no rows")]
