"""Issues, their comments, reactions and labels. A write of the App is told as an event."""

from __future__ import annotations

from tests.support.server.bodies import REACTIONS
from tests.support.server.call import (
    Call,
    Refusal,
    Reply,
    World,
    invalid,
    paged,
    the_comment,
    the_issue,
    the_repository,
)
from tests.support.server.records import Issue, Json, Reaction, stamp
from tests.support.server.routing import READ, WRITE, Route

MOST_BODY = 65_536


def get_issue(world: World, call: Call) -> Reply:
    """An issue."""
    return Reply(200, world.bodies.issue(the_repository(world, call), the_issue(world, call)))


def list_comments(world: World, call: Call) -> Reply:
    """The comments of an issue, the oldest first."""
    here, issue = the_repository(world, call), the_issue(world, call)
    every = world.state.conversation(here.full_name, issue.number)
    since = call.query.get("since", "")
    return paged(
        call,
        [one for one in every if stamp(one.updated_at) >= since],
        lambda one: world.bodies.comment(here, one),
    )


def create_comment(world: World, call: Call) -> Reply:
    """The App comments."""
    here, issue, body = the_repository(world, call), the_issue(world, call), _body(call)
    if issue.locked:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    one = world.state.comment(here.full_name, issue.number, world.state.app.login, body, app=True)
    world.announce(world.events.comment("created", one, one.author))
    shown = world.bodies.comment(here, one)
    return Reply(201, shown, {"location": shown["url"]})


def get_comment(world: World, call: Call) -> Reply:
    """A comment."""
    return Reply(200, world.bodies.comment(the_repository(world, call), the_comment(world, call)))


def update_comment(world: World, call: Call) -> Reply:
    """The App edits a comment of its own."""
    here, one, body = the_repository(world, call), the_comment(world, call), _body(call)
    if not one.app:
        raise Refusal(403, "Resource not accessible by integration")
    was = one.body
    world.state.edit(one, body)
    if was != body:
        world.announce(world.events.comment("edited", one, one.author, was))
    return Reply(200, world.bodies.comment(here, one))


def delete_comment(world: World, call: Call) -> Reply:
    """The App deletes a comment."""
    one = the_comment(world, call)
    world.announce(world.events.comment("deleted", one, world.state.app.login))
    del world.state.comments[one.id]
    return Reply(204)


def _body(call: Call) -> str:
    body = call.field("body")
    if not isinstance(body, str) or not body.strip():
        raise invalid("IssueComment", "data", "unprocessable", "Body cannot be blank")
    if len(body) > MOST_BODY:
        raise invalid(
            "IssueComment",
            "data",
            "unprocessable",
            f"Body is too long (maximum is {MOST_BODY} characters)",
        )
    return body


def react_to_issue(world: World, call: Call) -> Reply:
    """The App reacts to an issue."""
    return _react(world, call, the_issue(world, call).reactions)


def react_to_comment(world: World, call: Call) -> Reply:
    """The App reacts to a comment."""
    return _react(world, call, the_comment(world, call).reactions)


def _react(world: World, call: Call, reactions: list[Reaction]) -> Reply:
    content = call.field("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content", "invalid")
    one, new = world.state.react(reactions, world.state.app.login, content)
    return Reply(201 if new else 200, world.bodies.reaction(one))


def issue_reactions(world: World, call: Call) -> Reply:
    """The reactions to an issue."""
    return paged(call, the_issue(world, call).reactions, world.bodies.reaction)


def comment_reactions(world: World, call: Call) -> Reply:
    """The reactions to a comment."""
    return paged(call, the_comment(world, call).reactions, world.bodies.reaction)


def _labels(world: World, call: Call, issue: Issue) -> list[Json]:
    here = the_repository(world, call)
    return [world.bodies.label(here.full_name, here.labels[name.lower()]) for name in issue.labels]


def issue_labels(world: World, call: Call) -> Reply:
    """The labels on an issue."""
    return paged(call, _labels(world, call, the_issue(world, call)), lambda shown: shown)


def add_labels(world: World, call: Call) -> Reply:
    """Labels for an issue; GitHub makes those that the repository lacks."""
    here, issue = the_repository(world, call), the_issue(world, call)
    wanted = call.body if isinstance(call.body, list) else call.field("labels")
    names = [each["name"] if isinstance(each, dict) else each for each in wanted or ()]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise invalid("Label", "name", "invalid")
    on = {name.lower() for name in issue.labels}
    for name in names:
        if name.lower() not in on:
            world.announce(
                world.events.issue_labeled(
                    here.full_name, issue.number, name, world.state.app.login
                )
            )
    return Reply(200, _labels(world, call, issue))


def remove_label(world: World, call: Call) -> Reply:
    """Take a label off an issue; 404 when it is not on."""
    here, issue, name = the_repository(world, call), the_issue(world, call), call.params["name"]
    if name.lower() not in {each.lower() for each in issue.labels}:
        raise Refusal(404, "Label does not exist")
    world.announce(
        world.events.issue_labeled(
            here.full_name, issue.number, name, world.state.app.login, "unlabeled"
        )
    )
    return Reply(200, _labels(world, call, issue))


_ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"
_COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
ROUTES = (
    Route("GET", _COMMENT, READ, get_comment),
    Route("PATCH", _COMMENT, WRITE, update_comment),
    Route("DELETE", _COMMENT, WRITE, delete_comment),
    Route("GET", f"{_COMMENT}/reactions", READ, comment_reactions),
    Route("POST", f"{_COMMENT}/reactions", WRITE, react_to_comment),
    Route("GET", _ISSUE, (("issues", "read"),), get_issue),
    Route("GET", f"{_ISSUE}/comments", READ, list_comments),
    Route("POST", f"{_ISSUE}/comments", WRITE, create_comment),
    Route("GET", f"{_ISSUE}/reactions", READ, issue_reactions),
    Route("POST", f"{_ISSUE}/reactions", WRITE, react_to_issue),
    Route("GET", f"{_ISSUE}/labels", READ, issue_labels),
    Route("POST", f"{_ISSUE}/labels", WRITE, add_labels),
    Route("DELETE", f"{_ISSUE}/labels/{{name}}", WRITE, remove_label),
)
