"""Measures what sandboxes cost against a plain container: `python -m benchmarks.sandbox [--runs
N] [--json]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from sandbox.bwrap import BwrapSandbox
from sandbox.docker import DockerSandbox
from sandbox.port import Limits, RunSpec as Spec, Sandbox, SandboxError

SPEC = Spec(("/bin/true",), limits=Limits(wall_s=30, scratch_mb=64))
PLAIN, DOCKER, BWRAP = "plain docker", "docker", "bwrap"
TREE = {f"package_{at % 12}/module_{at}.py": b"x = 1\n" * 700 for at in range(300)}
"""What a program of a repository starts with: 300 files of 4 kB."""


def plain(sandbox: DockerSandbox) -> None:
    """Create, start, wait for and remove an ordinary container."""
    client = sandbox.client()
    container = client.api.create_container(
        sandbox.image, command=list(SPEC.argv), network_disabled=True
    )["Id"]
    client.api.start(container)
    client.api.wait(container)
    client.api.remove_container(container, v=True)


def guarded(sandbox: Sandbox, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
    """The same program through the port, with these files beside it."""
    done = sandbox.run(replace(SPEC, files=files))
    if done.exit_code != 0:
        raise SandboxError(f"{sandbox.name}: the trivial program ended with {done.exit_code}")


def measure(runs: int) -> dict[str, list[float]]:
    """Seconds of each kind, taken in turns so that the machine's mood falls on all alike; the
    first turn is not counted.
    """
    docker, bwrap = DockerSandbox(), BwrapSandbox()
    kinds: dict[str, Callable[[], None]] = {
        PLAIN: lambda: plain(docker),
        DOCKER: lambda: guarded(docker),
        BWRAP: lambda: guarded(bwrap),
        f"{DOCKER}, 300 files": lambda: guarded(docker, TREE),
        f"{BWRAP}, 300 files": lambda: guarded(bwrap, TREE),
    }
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(runs + 1):
        for name, act in kinds.items():
            began = time.perf_counter()
            act()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def summary(seconds: dict[str, list[float]]) -> dict[str, object]:
    """Median seconds, and the ratio of each kind to the plain container."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratios = {
        name: round(value / medians[PLAIN], 3) for name, value in medians.items() if name != PLAIN
    }
    return {
        "runs": len(seconds[PLAIN]),
        "median_s": {name: round(value, 4) for name, value in medians.items()},
        "ratio": ratios,
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox", description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        figures = summary(measure(max(1, chosen.runs)))
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if chosen.json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return 0
    medians, ratios = figures["median_s"], figures["ratio"]
    assert isinstance(medians, dict)
    assert isinstance(ratios, dict)
    for name, value in medians.items():
        sys.stdout.write(
            f"{name:18} {value * 1000:7.1f} ms  "
            f"{f'{ratios[name]:.2f} x' if name in ratios else ''}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
