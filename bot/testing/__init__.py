"""Fakes, shipped beside the ports they stand for and held to the same contract tests as the real things."""

from bot.testing.endpoint import FakeEndpoint
from bot.testing.engine import FakeBuilder, FakeCommits, FrozenClock, ListListener, MemoryRecorder
from bot.testing.github import FakeGitHub
from bot.testing.library import FakeLibrary, FakeShelf
from bot.testing.model import ScriptedModel
from bot.testing.queue import InlineQueue
from bot.testing.store import MemoryStore

__all__ = [
    "FakeBuilder",
    "FakeCommits",
    "FakeEndpoint",
    "FakeGitHub",
    "FakeLibrary",
    "FakeShelf",
    "FrozenClock",
    "InlineQueue",
    "ListListener",
    "MemoryRecorder",
    "MemoryStore",
    "ScriptedModel",
]
