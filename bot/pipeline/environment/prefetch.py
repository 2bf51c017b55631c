"""Environments that will probably be wanted next, built in the background while a program runs."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Self

from bot.errors import BuildError, Stopped, TransientError
from bot.models.environment import Environment, EnvironmentSpec
from bot.ports import Builder


class Prefetch:
    """Builds at most two environments at a time, each spec once. Only builds go on in threads:
    runs, judgements and what is kept of them stay with the caller. Leaving the context stops
    what nobody asked for in the end.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder, self._flag = builder, Event()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prefetch")
        self._started: dict[str, Future[Environment | None]] = {}

    def start(self, spec: EnvironmentSpec) -> None:
        """Begin with an environment, unless that was done before."""
        key = spec.model_dump_json()
        if key not in self._started:
            self._started[key] = self._pool.submit(self._made, spec)

    def take(self, spec: EnvironmentSpec, cancel: Event) -> Environment | None:
        """What was built ahead, waiting for it; None when nothing was, or when it has to be
        tried again in earnest.
        """
        future = self._started.pop(spec.model_dump_json(), None)
        if future is None or future.cancel():
            return None
        while not future.done():
            if cancel.wait(0.05):
                return None
        return future.result()

    def _made(self, spec: EnvironmentSpec) -> Environment | None:
        try:
            return self._builder.build(spec, cancel=self._flag)
        except (BuildError, Stopped, TransientError):
            return None  # whoever needs it builds it again, and hears why it fails

    def __enter__(self) -> Self:
        """Ready at once; nothing is built yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything that is still being built."""
        self._flag.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
