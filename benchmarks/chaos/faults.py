"""The faults: each is a row, with what is done to the App while the fault lasts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass

from benchmarks.chaos.scene import Scene
from bot.kernel.errors import UserError

_MANY = 1_000_000
_JUMP_S = 3_600.0
Inject = Callable[[Scene, float], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`inject` breaks something for as long as its block lasts, at most the given seconds. It is
    done under an App with this sandbox ("" for any); with `dead_model`, the App has a model that
    nobody answers for, and every second report lacks what a run would need; with `own_daemon`, it
    has a Docker daemon of its own.
    """

    name: str
    what: str
    inject: Inject
    sandbox: str = ""
    dead_model: bool = False
    own_daemon: bool = False


def _nothing(_scene: Scene, _seconds: float) -> AbstractContextManager[None]:
    return nullcontext()


def _redis(scene: Scene, _seconds: float) -> AbstractContextManager[None]:
    return scene.app.redis.down("redis")


@contextmanager
def _postgres(scene: Scene, _seconds: float) -> Iterator[None]:
    scene.database.stop()
    try:
        yield
    finally:
        scene.database.start()


def _docker(scene: Scene, _seconds: float) -> AbstractContextManager[None]:
    return scene.docker.shut()


@contextmanager
def _daemon(scene: Scene, _seconds: float) -> Iterator[None]:
    assert scene.daemon is not None
    scene.daemon.stop()
    try:
        yield
    finally:
        scene.daemon.start()


@contextmanager
def _full_disk(scene: Scene, _seconds: float) -> Iterator[None]:
    if scene.disk is None:
        raise UserError("A small disk cannot be mounted.", "Run this as root.")
    ballast = scene.disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"\0" * 65_536):
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def _server_errors(scene: Scene, _seconds: float) -> Iterator[None]:
    scene.app.hub.fail("error", status=502, times=_MANY)
    try:
        yield
    finally:
        scene.app.hub.clear_faults()


@contextmanager
def _rate_limit(scene: Scene, seconds: float) -> Iterator[None]:
    scene.app.hub.fail("secondary", seconds=seconds, times=_MANY)
    try:
        yield
    finally:
        scene.app.hub.clear_faults()


@contextmanager
def _clock_jump(scene: Scene, _seconds: float) -> Iterator[None]:
    scene.clock.write_text(str(_JUMP_S))
    try:
        yield
    finally:
        scene.clock.unlink()


@contextmanager
def _worker_killed(scene: Scene, _seconds: float) -> Iterator[None]:
    with scene.app.programs.down("worker-1"):
        yield


@contextmanager
def _all_killed(scene: Scene, _seconds: float) -> Iterator[None]:
    chance = random.Random(0)
    for _ in range(6):
        scene.app.programs.kill(chance)
    yield


FAULTS = (
    Fault("none", "nothing is broken", _nothing),
    Fault("redis", "Redis is killed, comes back empty", _redis),
    Fault("postgres", "PostgreSQL stops and starts again", _postgres),
    Fault("github-5xx", "GitHub answers 502 to everything", _server_errors),
    Fault("rate-limit", "GitHub's secondary rate limit, 403 with retry-after", _rate_limit),
    Fault("clock", "the clock of one worker is an hour ahead, then right again", _clock_jump),
    Fault("worker", "a worker is killed in the middle of its runs", _worker_killed),
    Fault("all", "every process of the App is killed", _all_killed),
    Fault("disk", "the disk of the workers is full", _full_disk),
    Fault("docker", "Docker's socket goes away with all its connections", _docker, "docker"),
    Fault(
        "dockerd",
        "Docker's daemon ends, and its containers; it starts again",
        _daemon,
        "docker",
        own_daemon=True,
    ),
    Fault("model", "the model's address answers nobody", _nothing, dead_model=True),
)
