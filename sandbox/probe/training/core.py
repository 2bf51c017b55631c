"""What every part of the probe shares: the records, and that no failure reaches the program."""

import functools
import os
import sys
import time
import traceback

_MOST_FAILURES, _ALL_STEPS = 3, 2000
_DEBUG = os.environ.get("REPRISE_TRAINING") == "debug"


def _never():
    return False


class State:
    """What this process has seen so far."""

    def __init__(self):
        self.pid = os.getpid()
        self.began = time.time()
        self.steps = self.made = 0
        self.failures = 0
        self.failed = {}
        self.unseen = []
        self.facts = {}  # of the code, by whatever framework trains
        self.busy = False
        self.capturing = _never

    def cannot_see(self, what):
        if what not in self.unseen:
            self.unseen.append(what)


STATE = State()
NO_MODEL = "layers: no model holds the variables"


def quiet(part):
    """A hook that never raises, does not see what the probe itself calls, and does nothing while
    PyTorch or CUDA records what runs. After three failures its part of the probe is disarmed.
    """

    def decorate(function):
        @functools.wraps(function)
        def hook(*args, **kwargs):
            if STATE.busy or STATE.failed.get(part, 0) >= _MOST_FAILURES or STATE.capturing():
                return None
            STATE.busy = True
            try:
                return function(*args, **kwargs)
            except Exception:
                _failed(part)
                return None
            finally:
                STATE.busy = False

        return hook

    return decorate


def contained(part):
    """A part of a hook that may fail alone; what goes on around it does."""

    def decorate(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            if STATE.failed.get(part, 0) >= _MOST_FAILURES:
                return None
            try:
                return function(*args, **kwargs)
            except Exception:
                _failed(part)
                return None

        return inner

    return decorate


def _failed(part):
    STATE.failures += 1
    STATE.failed[part] = STATE.failed.get(part, 0) + 1
    if STATE.failed[part] == _MOST_FAILURES:
        STATE.cannot_see("%s: the probe failed" % part)
    if _DEBUG:
        sys.stderr.write("reprise training probe, %s:\n%s" % (part, traceback.format_exc()))


def patch(owner, name, make):
    """Put `make(original)` in the place of an attribute, with the original's name and words."""
    original = getattr(owner, name, None)
    if original is None:
        return
    setattr(owner, name, functools.wraps(original)(make(original)))


def follow(owner, name, hook):
    """Call `hook(result, *arguments, **options)` after each call of an attribute."""

    def make(original):
        def followed(*args, **kwargs):
            result = original(*args, **kwargs)
            hook(result, *args, **kwargs)
            return result

        return followed

    patch(owner, name, make)


def is_sampled(step):
    """Whether a step's loss is written down: all of the first, then every tenth, hundredth, ..."""
    return next_kept(step) == step


def next_kept(step):
    """The first step whose loss is written down that is not before this one."""
    if step < _ALL_STEPS:
        return step
    apart = 10 ** len(str(step // _ALL_STEPS))
    return -(-step // apart) * apart


def last_kept(step):
    """The last step of those from this one on whose losses are all written down."""
    return max(step, _ALL_STEPS - 1)


def next_sampled(step):
    """The first sampled step that is not before this one: the first twenty, then every 25th, from
    the 500th on in steps of a tenth.
    """
    if step < 20:
        return step
    if step <= 500:
        return -(-step // 25) * 25
    at = 500
    while at < step:
        at += at // 10
    return at


def sampled(step):
    """Whether tensors are looked at in a step."""
    return next_sampled(step) == step
