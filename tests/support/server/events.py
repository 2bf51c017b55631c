"""Webhook events as GitHub would send them, built from the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.support.server.bodies import Bodies, node
from tests.support.server.records import Comment, Installation, Json, Repository
from tests.support.server.state import State


@dataclass(frozen=True, slots=True)
class Event:
    """What happened: the X-GitHub-Event header and the payload."""

    name: str
    payload: Json


class Events:
    """Builds events. Each builder makes what it needs in the state, so that reading it
    afterwards fits the payload.
    """

    def __init__(self, state: State, bodies: Bodies) -> None:
        self._state = state
        self._bodies = bodies

    def issue_opened(self, repository: str, number: int) -> Event:
        """Somebody opened an issue that the state already has."""
        return self._issues("opened", repository, number)

    def issue_labeled(
        self, repository: str, number: int, label: str, sender: str = "", action: str = "labeled"
    ) -> Event:
        """Somebody set a label on an issue, or took it off ("unlabeled")."""
        with self._state.lock:
            here = self._state.repository(repository)
            issue, known = here.issues[number], self._state.label(repository, label)
            on = {name.lower() for name in issue.labels}
            if action == "labeled" and label.lower() not in on:
                issue.labels.append(known.name)
            if action == "unlabeled":
                issue.labels = [name for name in issue.labels if name.lower() != label.lower()]
            return self._issues(
                action,
                repository,
                number,
                sender,
                {"label": self._bodies.label(here.full_name, known)},
            )

    def issue_deleted(self, repository: str, number: int, sender: str = "") -> Event:
        """Somebody deleted an issue; it and its comments are gone from the state."""
        with self._state.lock:
            event = self._issues("deleted", repository, number, sender)
            self._drop(repository, number)
            return event

    def issue_transferred(self, repository: str, number: int, to: str, sender: str = "") -> Event:
        """Somebody moved an issue to another repository, under a number of its own there."""
        with self._state.lock:
            old, there = (
                self._state.repository(repository).issues[number],
                self._state.repository(to),
            )
            new = self._state.issue(
                to, old.title, old.body, old.author, labels=old.labels, created_at=old.created_at
            )
            changes = {
                "new_issue": self._bodies.issue(there, new),
                "new_repository": self._bodies.repository(there),
            }
            event = self._issues("transferred", repository, number, sender, {"changes": changes})
            self._drop(repository, number)
            return event

    def issue_comment(
        self, repository: str, number: int, author: str = "reporter", body: str = "",
        action: Literal["created", "edited", "deleted"] = "created", *, before: str = "", comment: int | None = None,
    ) -> Event:  # fmt: skip
        """Somebody comments, edits a comment (which said `before`) or deletes one. Without the
        id of a comment it is made.
        """
        with self._state.lock:
            known = self._state.comments.get(comment) if comment is not None else None
            one = known or self._state.comment(
                repository, number, author, before if action == "edited" else body
            )
            was = one.body
            if action == "edited":
                self._state.edit(one, body)
            event = self.comment(action, one, author, was)
            if action == "deleted":
                del self._state.comments[one.id]
            return event

    def comment(self, action: str, one: Comment, sender: str, was: str = "") -> Event:
        """The event for a comment as it is."""
        here = self._state.repository(one.repository)
        payload = self._payload(action, here, sender)
        payload["issue"] = self._bodies.issue(here, here.issues[one.number])
        payload["comment"] = self._bodies.comment(here, one)
        return Event(
            "issue_comment",
            {**payload, "changes": {"body": {"from": was}}} if action == "edited" else payload,
        )

    def installation(self, action: str, installation: int, sender: str = "") -> Event:
        """The App was installed ("created") or uninstalled ("deleted", which the state then
        knows).
        """
        with self._state.lock:
            one = self._state.installations[installation]
            payload = self._installed(action, one, sender)
            payload["repositories"] = [self._short(name) for name in one.repositories]
            if action == "deleted":
                del self._state.installations[installation]
            return Event("installation", payload)

    def repositories_removed(self, installation: int, names: list[str], sender: str = "") -> Event:
        """Repositories leave an installation."""
        with self._state.lock:
            one = self._state.installations[installation]
            one.repositories = [name for name in one.repositories if name not in names]
            payload = self._installed("removed", one, sender)
            payload |= {
                "repository_selection": "selected",
                "repositories_added": [],
                "requester": None,
            }
            return Event(
                "installation_repositories",
                {**payload, "repositories_removed": list(map(self._short, names))},
            )

    def ping(self) -> Event:
        """What GitHub sends when a webhook is set up."""
        app = self._state.app
        config = {
            "content_type": "json",
            "insecure_ssl": "0",
            "url": app.webhook,
            "secret": "********",
        }
        hook = {
            "type": "App",
            "id": app.id,
            "name": "web",
            "active": True,
            "events": app.events,
            "config": config,
        }
        times = {
            "updated_at": self._bodies.app(app)["updated_at"],
            "created_at": self._bodies.app(app)["created_at"],
        }
        return Event(
            "ping",
            {
                "zen": "Keep it logically awesome.",
                "hook_id": app.id,
                "hook": {**hook, **times, "app_id": app.id},
            },
        )

    def _drop(self, repository: str, number: int) -> None:
        for comment in self._state.conversation(repository, number):
            del self._state.comments[comment.id]
        del self._state.repository(repository).issues[number]

    def _issues(
        self, action: str, repository: str, number: int, sender: str = "", more: Json | None = None
    ) -> Event:
        with self._state.lock:
            here = self._state.repository(repository)
            issue = here.issues[number]
            payload = self._payload(action, here, sender or issue.author)
            return Event(
                "issues", {**payload, "issue": self._bodies.issue(here, issue), **(more or {})}
            )

    def _payload(self, action: str, here: Repository, sender: str) -> Json:
        payload = {
            "action": action,
            "repository": self._bodies.repository(here),
            "sender": self._bodies.user(sender),
        }
        if self._state.user(here.owner).type == "Organization":
            payload["organization"] = self._bodies.organization(here.owner)
        covering = self._state.covering(here.full_name)
        if covering is None:
            return payload
        return {
            **payload,
            "installation": {"id": covering.id, "node_id": node("Installation", covering.id)},
        }

    def _installed(self, action: str, one: Installation, sender: str) -> Json:
        shown = self._bodies.installation(one)
        return {
            "action": action,
            "installation": shown,
            "sender": self._bodies.user(sender or one.account),
        }

    def _short(self, name: str) -> Json:
        one = self._state.repository(name, installed=False)
        short = {"id": one.id, "node_id": node("Repository", one.id), "name": one.name}
        return {**short, "full_name": one.full_name, "private": one.private}
