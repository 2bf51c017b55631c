"""A delivery about one issue, with everything needed to answer it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.config import Config
from bot.models.delivery import Delivery
from bot.models.issue import Issue
from bot.service.app_context import AppContext
from bot.service.ports.github import Target


@dataclass(frozen=True)
class IssueEvent:
    """One delivery about issue `number` of the repository `target`, and its configuration."""

    context: AppContext
    delivery: Delivery
    issue: Issue
    target: Target
    number: int
    config: Config
