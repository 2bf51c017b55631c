"""A stateful GitHub over HTTP: REST, webhooks, git and a page for each issue, with failures on
demand.
"""

from tests.support.server.events import Event
from tests.support.server.log import Entry, gaps
from tests.support.server.openapi import OpenApi
from tests.support.server.server import GitHubServer

__all__ = ["Entry", "Event", "GitHubServer", "OpenApi", "gaps"]
