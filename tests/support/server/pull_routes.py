"""Pull requests: opened, listed, edited and closed; and a token that is given back."""

from __future__ import annotations

from tests.support.server.bodies import node
from tests.support.server.call import (
    Call,
    Refusal,
    Reply,
    World,
    invalid,
    not_found,
    paged,
    the_repository,
)
from tests.support.server.records import Json, Pull, Repository, now, stamp
from tests.support.server.routing import PULLS, READ_PULLS, Route


def create(world: World, call: Call) -> Reply:
    """Open a pull request; 422 when the branch has an open one, or holds nothing new."""
    here, head, base = the_repository(world, call), str(call.field("head")), str(call.field("base"))
    if here.archived:
        raise Refusal(403, "Repository was archived so is read-only.")
    ids = [world.git.resolve(here, f"refs/heads/{name}") for name in (head, base)]
    if not all(ids):
        raise invalid("PullRequest", "head", "invalid")
    if any(one.branch == head and _open(here, one) for one in here.pulls.values()):
        message = f"A pull request already exists for {here.owner}:{head}."
        raise Refusal(422, "Validation Failed", [_custom(message)])
    if not world.git.log(here, ids[0], f"^{ids[1]}"):
        message = f"No commits between {base} and {head}"
        raise Refusal(422, "Validation Failed", [_custom(message)])
    if call.field("draft") and not here.drafts:
        raise Refusal(422, "Draft pull requests are not supported in this repository.")
    issue = world.state.issue(
        here.full_name,
        str(call.field("title")),
        call.field("body"),
        world.state.app.login,
        pull_request=True,
    )
    here.pulls[issue.number] = Pull(issue.number, head, base, bool(call.field("draft")))
    return Reply(201, shown(world, here, here.pulls[issue.number]))


def listed(world: World, call: Call) -> Reply:
    """The pull requests of a branch, the newest first."""
    here, state = the_repository(world, call), call.query.get("state", "open")
    owner, _, branch = call.query.get("head", "").partition(":")
    found = [
        one
        for one in sorted(here.pulls.values(), key=lambda one: -one.number)
        if (not branch or (one.branch == branch and owner.lower() == here.owner.lower()))
        and state in {"all", here.issues[one.number].state}
    ]
    return paged(call, found, lambda one: shown(world, here, one))


def update(world: World, call: Call) -> Reply:
    """Another title, body or state."""
    here, number = the_repository(world, call), call.params["pull_number"]
    one = here.pulls.get(int(number)) if number.isdigit() else None
    if one is None:
        raise not_found()
    issue = here.issues[one.number]
    issue.title = call.field("title") or issue.title
    issue.body = call.field("body") or issue.body
    issue.state = call.field("state") or issue.state
    issue.updated_at = now()
    return Reply(200, shown(world, here, one))


def revoke(world: World, call: Call) -> Reply:
    """The token that asks is no more."""
    if call.token is None:
        raise Refusal(401, "Requires authentication")
    world.state.tokens.pop(call.token.value, None)
    return Reply(204)


def _open(here: Repository, one: Pull) -> bool:
    return here.issues[one.number].state == "open"


def _custom(message: str) -> Json:
    return {"resource": "PullRequest", "code": "custom", "message": message}


def shown(world: World, here: Repository, one: Pull) -> Json:
    """A pull request, in full."""
    issue, name = here.issues[one.number], here.full_name
    url, page = (
        f"{world.bodies.api}/repos/{name}/pulls/{one.number}",
        f"{world.bodies.web}/{name}/pull/{one.number}",
    )
    issues = f"{world.bodies.api}/repos/{name}/issues/{one.number}"
    links = {
        "comments": f"{issues}/comments",
        "commits": f"{url}/commits",
        "statuses": f"{world.bodies.api}/repos/{name}/statuses/0",
        "html": page,
        "issue": issues,
        "review_comments": f"{url}/comments",
        "review_comment": f"{url}/comments/0",
        "self": url,
    }
    return {
        "_links": {key: {"href": value} for key, value in links.items()},
        **{f"{key}_url": value for key, value in links.items() if key not in {"self", "html"}},
        "url": url,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "id": issue.id,
        "node_id": node("PullRequest", issue.id),
        "number": one.number,
        "state": issue.state,
        "locked": False,
        "draft": one.draft,
        "title": issue.title,
        "body": issue.body,
        "user": world.bodies.user(issue.author),
        "labels": [],
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": stamp(issue.updated_at) if issue.state == "closed" else None,
        "merged_at": stamp(one.merged_at) if one.merged_at else None,
        "merged": one.merged_at is not None,
        **dict.fromkeys(("assignee", "milestone", "auto_merge", "merged_by", "mergeable")),
        "merge_commit_sha": None,
        "mergeable_state": "unknown",
        "author_association": "CONTRIBUTOR",
        "maintainer_can_modify": False,
        **dict.fromkeys(("additions", "deletions", "changed_files", "commits"), 1),
        **dict.fromkeys(("comments", "review_comments"), 0),
        "head": _end(world, here, one.branch),
        "base": _end(world, here, one.base),
    }


def _end(world: World, here: Repository, branch: str) -> Json:
    return {
        "label": f"{here.owner}:{branch}",
        "ref": branch,
        "sha": world.git.resolve(here, f"refs/heads/{branch}") or "0" * 40,
        "repo": world.bodies.repository(here),
        "user": world.bodies.user(here.owner),
    }


_REPO = "/repos/{owner}/{repo}"

ROUTES = (
    Route("POST", f"{_REPO}/pulls", PULLS, create),
    Route("GET", f"{_REPO}/pulls", READ_PULLS, listed),
    Route("PATCH", f"{_REPO}/pulls/{{pull_number}}", PULLS, update),
    Route("DELETE", "/installation/token", "anyone", revoke),
)
