"""The fake from another process: JSON in and out under /-/, for whoever runs it by `python -m
tests.support.server.main`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.support.server.api import Api
from tests.support.server.call import Reply, World
from tests.support.server.faults import Fault
from tests.support.server.hooks import Hooks
from tests.support.server.records import HookDelivery, Json

STATE_CALLS = (
    "installation",
    "repository",
    "collaborator",
    "issue",
    "label",
    "comment",
    "covering",
)
EVENT_CALLS = (
    "issue_opened", "issue_labeled", "issue_deleted", "issue_transferred", "issue_comment",
    "installation", "repositories_removed", "ping",
)  # fmt: skip


class Control:
    """Answers GET /-/state, and POST /-/state/NAME, /-/deliver/NAME, /-/commit, /-/fail,
    /-/webhook with arguments as JSON.
    """

    def __init__(self, world: World, api: Api, hooks: Hooks) -> None:
        self._world = world
        self._api = api
        self._hooks = hooks

    def answer(self, method: str, path: str, raw: bytes) -> Reply:
        """One request."""
        if method == "GET":
            return _json(self.dump()) if path == "/-/state" else _json({"message": "unknown"}, 404)
        what, _, name = path.removeprefix("/-/").partition("/")
        calls: dict[str, Callable[[str, Json], Any]] = {
            "state": self._state,
            "deliver": self._deliver,
            "commit": self._commit,
            "fail": self._fail,
            "webhook": self._webhook,
        }
        try:
            arguments = _arguments(json.loads(raw or b"{}"))
            return _json(calls[what](name, arguments))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return _json({"message": f"{type(error).__name__}: {error}"}, 400)

    def dump(self) -> Json:
        """What this GitHub holds and what it was asked, without secrets."""
        state = self._world.state
        with state.lock:
            return {
                "repositories": {
                    each.full_name: dataclasses.asdict(each) for each in state.repositories.values()
                },
                "comments": [dataclasses.asdict(each) for each in state.comments.values()],
                "deliveries": [tried(each) for each in state.deliveries],
                "requests": [dataclasses.asdict(each) for each in self._api.requests],
                "violations": list(self._api.violations),
            }

    def _state(self, name: str, arguments: Json) -> Any:
        if name not in STATE_CALLS:
            raise KeyError(name)
        made = getattr(self._world.state, name)(**arguments)
        return (
            dataclasses.asdict(made)
            if dataclasses.is_dataclass(made) and not isinstance(made, type)
            else made
        )

    def _deliver(self, name: str, arguments: Json) -> Any:
        if name not in EVENT_CALLS:
            raise KeyError(name)
        guid = arguments.pop("guid", None)
        return tried(self._hooks.deliver(getattr(self._world.events, name)(**arguments), guid))

    def _commit(self, _name: str, arguments: Json) -> Any:
        here = self._world.state.repository(arguments.pop("repository"))
        return {"sha": self._world.git.commit(here, **arguments)}

    def _fail(self, _name: str, arguments: Json) -> Any:
        self._api.faults.add(Fault(**arguments))

    def _webhook(self, _name: str, arguments: Json) -> Any:
        self._world.state.app.webhook = arguments["url"]


def tried(one: HookDelivery) -> Json:
    """A delivery without its payload."""
    shown = dataclasses.asdict(one)
    return {name: value for name, value in shown.items() if name not in {"payload", "raw"}}


def _arguments(given: Json) -> Json:
    moments = ("created_at", "date")
    return {
        name: datetime.fromisoformat(value) if name in moments and value else value
        for name, value in given.items()
    }


def _json(body: Any, status: int = 200) -> Reply:
    return Reply(status, raw=json.dumps(body, default=str).encode())
