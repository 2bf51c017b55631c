"""Fakes, shipped beside the ports they stand for and held to the same contract tests as the real things."""

from bot.testing.engine import FakeBuilder, FrozenClock, ListListener, MemoryRecorder

__all__ = ["FakeBuilder", "FrozenClock", "ListListener", "MemoryRecorder"]
