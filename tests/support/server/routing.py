"""Which handler a method and path belong to, and what a caller needs for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from urllib.parse import unquote

from tests.support.server.access import Need
from tests.support.server.call import Call, Reply, World

Handler = Callable[[World, Call], Reply]
METADATA: tuple[Need, ...] = (("metadata", "read"),)
CONTENTS: tuple[Need, ...] = (("contents", "read"),)
PUSH: tuple[Need, ...] = (("contents", "write"),)
PULLS: tuple[Need, ...] = (("pull_requests", "write"),)
READ_PULLS: tuple[Need, ...] = (("pull_requests", "read"),)
READ: tuple[Need, ...] = (("issues", "read"), ("pull_requests", "read"))
WRITE: tuple[Need, ...] = (("issues", "write"), ("pull_requests", "write"))


@dataclass(frozen=True)
class Route:
    """A path as GitHub's description writes it; `path` in it stands for several segments."""

    method: str
    template: str
    needs: Sequence[Need] | Literal["app", "anyone"]
    handle: Handler

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches a path whose segments are still quoted."""
        return template_pattern(self.template)


def template_pattern(template: str) -> re.Pattern[str]:
    """A path with {names} as a pattern; `path` in it stands for several segments."""
    parts = re.split(r"\{(\w+)\}", template)
    names = [
        f"(?P<{part}>{'.+' if part == 'path' else '[^/]+'})" if odd % 2 else re.escape(part)
        for odd, part in enumerate(parts)
    ]
    return re.compile("".join(names))


def find(
    routes: Sequence[Route], method: str, raw_path: str
) -> tuple[Route, dict[str, str]] | None:
    """The route of a quoted path, with its parameters unquoted."""
    for route in routes:
        match = route.pattern.fullmatch(raw_path) if route.method == method else None
        if match is not None:
            return route, {name: unquote(value) for name, value in match.groupdict().items()}
    return None
