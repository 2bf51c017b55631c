"""The log of a server on standard error: one line an event, without secrets."""

import logging
import re
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

from bot.text.sanitize import redact

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_QUIET = (
    "httpx",
    "httpcore",
    "hishel",
    "githubkit",
    "docker",
    "urllib3",
    "alembic",
    "sqlalchemy",
    "uvicorn.access",
)


class Redacting(logging.Formatter):
    """Formats a record, tracebacks included, and takes secrets and control characters out of the
    text.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it."""
        return _CONTROL.sub(" ", redact(super().format(record), self._secrets))


def to_stderr(secrets: Iterable[str]) -> None:
    """Send the log of this process to standard error; libraries log only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacting(secrets))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def shown(url: str) -> str:
    """An address of a database or queue without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}@{host}" if parts.username else host).geturl()
