"""`python -m tests.support.server.main`: the fake GitHub as a process of its own, steered under
/-/ (see `control`).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from threading import Event

from tests.support.server.server import GitHubServer


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.server.main", description=__doc__
    )
    parser.add_argument(
        "--port", type=int, default=0, help="0: any free one, shown in the first line of the output"
    )
    parser.add_argument("--webhook", default="", help="where events are delivered")
    parser.add_argument(
        "--openapi",
        type=Path,
        help="api.github.com.json of @octokit/openapi: requests are judged by it",
    )
    parser.add_argument(
        "--settings", type=Path, required=True, help="where the App's settings are written, as JSON"
    )
    parser.add_argument("--state", type=Path, help="where the state is written at the end, as JSON")
    parser.add_argument(
        "--no-echo", action="store_true", help="do not deliver what the App's own writes cause"
    )
    chosen = parser.parse_args()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with GitHubServer(
        openapi=chosen.openapi, webhook=chosen.webhook, port=chosen.port, echo=not chosen.no_echo
    ) as hub:
        chosen.settings.touch(mode=0o600)
        chosen.settings.write_text(json.dumps(hub.settings()))
        sys.stdout.write(json.dumps({"url": hub.url, "api_url": hub.api_url}) + "\n")
        sys.stdout.flush()
        stop.wait()
        if chosen.state is not None:
            chosen.state.write_text(json.dumps(hub.control.dump(), default=str))


if __name__ == "__main__":
    main()
