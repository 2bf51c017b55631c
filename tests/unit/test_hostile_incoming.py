"""What a person does not see in an issue, the machine does not read: no field, program,
signature or command comes from it.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from bot.kernel.bug import Issue
from bot.products.engine import plan
from handlers.commands import parse as commands
from tests.corpus.hostile.corpus import Hostile, load
from tests.support.jobs import issue_job

TEXTS = load("incoming")
SHORT = [each for each in TEXTS if not each.fill]
UNSEEN = set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
FRAMES = st.sampled_from(
    [
        "{}",
        "Before.\n\n{}",
        "{}\n\nIt fails in torch 2.1.0.\n",
        "> quoted\n\n{}",
        "1. a\n2. b\n\n{}",
        "### Logs\n\n{}\n\n### More\n",
    ]
)


def leaves(value: object) -> Iterator[str]:
    """Every text that a value holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(key)
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)


def unseen(text: str) -> set[str]:
    """The characters of a text that no eye sees."""
    return {
        char
        for char in text
        if (unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t")
        or char in UNSEEN
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    }


def everything(issue: Issue) -> list[str]:
    """All that is made of an issue before anything runs: what was read, the programs, what will
    count, what is installed.
    """
    return [*leaves(plan(issue_job(issue)).model_dump())]


@pytest.mark.parametrize("hostile", TEXTS, ids=lambda each: each.id)
def test_nothing_hidden_is_read(hostile: Hostile) -> None:
    started = time.process_time()
    found = everything(Issue(title=hostile.title, body=hostile.text, repository="acme/pool"))
    assert time.process_time() - started < 12
    assert not unseen("".join(found))
    for word in hostile.hides:
        assert not any(word in text for text in found), word
    for word in hostile.shows:
        assert any(word in text for text in found), word


@pytest.mark.parametrize("hostile", TEXTS, ids=lambda each: each.id)
def test_only_visible_words_command(hostile: Hostile) -> None:
    started = time.process_time()
    assert len(commands(hostile.text)) == hostile.commands
    assert time.process_time() - started < 10


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(SHORT), min_size=1, max_size=3), FRAMES)
def test_nothing_hidden_is_read_wherever_it_stands(several: list[Hostile], frame: str) -> None:
    """What is unclosed stands last: a comment hides what follows, a fence shows it; a title
    cannot be joined.
    """
    ordered = sorted(several, key=lambda each: ("unclosed" in each.id, "fence" in each.id))
    body = frame.replace("{}", "\n\n".join(each.text for each in ordered))
    found = everything(Issue(title="Training fails", body=body, repository="acme/pool"))
    assert not unseen("".join(found))
    for hostile in several:
        for word in hostile.hides:
            assert not any(word in text for text in found), (hostile.id, word)
