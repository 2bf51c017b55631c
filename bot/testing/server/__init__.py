"""A stateful GitHub over HTTP: REST, webhooks, git and a page for each issue, with failures on demand."""

from bot.testing.server.events import Event
from bot.testing.server.log import Entry, gaps
from bot.testing.server.openapi import OpenApi
from bot.testing.server.server import GitHubServer

__all__ = ["Entry", "Event", "GitHubServer", "OpenApi", "gaps"]
