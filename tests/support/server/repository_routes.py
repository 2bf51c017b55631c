"""A repository, its files, its labels, and what people may do there."""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

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
from tests.support.server.git import Entry
from tests.support.server.records import Json, Label, Repository
from tests.support.server.routing import CONTENTS, METADATA, READ, WRITE, Route

LARGE = 1_048_576
HUGE = 100 * LARGE
_TYPES = {"blob": "file", "tree": "dir", "commit": "submodule"}


def get_repository(world: World, call: Call) -> Reply:
    """A repository."""
    return Reply(200, world.bodies.repository(the_repository(world, call)))


def get_permission(world: World, call: Call) -> Reply:
    """What someone may do; 404 for a login that nobody has."""
    here, login = the_repository(world, call), call.params["username"]
    if login.lower() not in world.state.users:
        raise Refusal(404, f"{login} is not a user")
    return Reply(200, world.bodies.permission(here, login))


def get_content(world: World, call: Call) -> Reply:
    """A file or folder: as JSON, as an object, or raw."""
    here, path, ref = (
        the_repository(world, call),
        call.params.get("path", "").strip("/"),
        call.query.get("ref"),
    )
    tree = world.git.tree(here, ref or here.default_branch)
    if tree is None:
        raise Refusal(
            404, f"No commit found for the ref {ref}" if ref else "This repository is empty."
        )
    accept = call.headers.get("accept", "")
    found = next((each for each in tree if each.path == path), None)
    if not path or (found is not None and found.kind == "tree"):
        depth = path.count("/") + 1 if path else 0
        inside = [
            each
            for each in tree
            if each.path.startswith(f"{path}/" if path else "") and each.path.count("/") == depth
        ]
        return _folder(world, here, found, inside, accept)
    if found is None:
        raise not_found()
    return _file(world, here, found, accept)


def get_commit(world: World, call: Call) -> Reply:
    """The commit that a ref names."""
    here, ref = the_repository(world, call), call.params["ref"]
    sha = world.git.resolve(here, ref)
    if not sha:
        raise Refusal(422, f"No commit found for SHA: {ref}")
    url = f"{world.bodies.api}/repos/{here.full_name}/commits/{sha}"
    page = f"{world.bodies.web}/{here.full_name}/commit/{sha}"
    who = {"name": "Octo Cat", "email": "octocat@example.com", "date": "2026-01-01T00:00:00Z"}
    tree = {"sha": sha, "url": f"{world.bodies.api}/repos/{here.full_name}/git/trees/{sha}"}
    commit = {"url": url, "author": who, "committer": who, "message": "Change", "tree": tree}
    shown: Json = {
        "url": url,
        "sha": sha,
        "node_id": "C_1",
        "html_url": page,
        "comments_url": f"{url}/comments",
        "commit": {**commit, "comment_count": 0},
        "author": None,
        "committer": None,
        "parents": [],
    }
    return Reply(200, shown)


def _folder(
    world: World, here: Repository, found: Entry | None, inside: list[Entry], accept: str
) -> Reply:
    entries = [_shown(world, here, each) for each in inside]
    if ".object" not in accept:
        return Reply(200, entries)
    top = found or Entry("040000", "tree", "0" * 40, 0, "")
    media = "application/vnd.github.object+json; charset=utf-8"
    return Reply(200, {**_shown(world, here, top), "entries": entries}, media=media)


def _file(world: World, here: Repository, found: Entry, accept: str) -> Reply:
    raw = world.git.blob(here, found.sha) if found.kind == "blob" else b""
    if ".raw" in accept and len(raw) <= HUGE:
        return Reply(200, raw=raw, media="application/vnd.github.raw+json; charset=utf-8")
    if len(raw) > HUGE or (len(raw) > LARGE and ".object" not in accept):
        message = "This API returns blobs up to 1 MB in size. The requested blob is too large to fetch via the API."
        raise Refusal(403, message, [{"resource": "Blob", "field": "data", "code": "too_large"}])
    body = _shown(world, here, found)
    if found.mode == "120000":
        body["target"] = raw.decode("utf-8", "replace")
    elif found.kind == "commit":
        body["submodule_git_url"] = None
    else:
        small = len(raw) <= LARGE
        body |= {
            "encoding": "base64" if small else "none",
            "content": base64.encodebytes(raw).decode() if small else "",
        }
    media = "application/vnd.github.object+json" if ".object" in accept else "application/json"
    return Reply(200, body, media=f"{media}; charset=utf-8")


def _shown(world: World, here: Repository, one: Entry) -> Json:
    kind = "symlink" if one.mode == "120000" else _TYPES[one.kind]
    where = f"{here.full_name}/contents/{quote(one.path)}"
    url = f"{world.bodies.api}/repos/{where}?ref={here.default_branch}"
    git_url = f"{world.bodies.api}/repos/{here.full_name}/git/{one.kind}s/{one.sha}"
    page = f"{world.bodies.web}/{here.full_name}/{one.kind}/{here.default_branch}/{quote(one.path)}"
    raw = (
        f"{world.bodies.web}/raw/{here.full_name}/{here.default_branch}/{quote(one.path)}"
        if one.kind == "blob"
        else None
    )
    return {
        "type": kind,
        "size": one.size,
        "name": one.path.rpartition("/")[2],
        "path": one.path,
        "sha": one.sha,
        "url": url,
        "git_url": git_url,
        "html_url": page,
        "download_url": raw,
        "_links": {"self": url, "git": git_url, "html": page},
    }


def list_labels(world: World, call: Call) -> Reply:
    """The labels of a repository."""
    here = the_repository(world, call)
    return paged(
        call, list(here.labels.values()), lambda one: world.bodies.label(here.full_name, one)
    )


def get_label(world: World, call: Call) -> Reply:
    """One label."""
    here = the_repository(world, call)
    found = here.labels.get(call.params["name"].lower())
    if found is None:
        raise not_found()
    return Reply(200, world.bodies.label(here.full_name, found))


def create_label(world: World, call: Call) -> Reply:
    """A new label; 422 when there is one, or when it does not fit."""
    here, name, color = the_repository(world, call), call.field("name"), call.field("color")
    if not isinstance(name, str) or not name.strip():
        raise invalid("Label", "name", "missing_field")
    if len(name) > 50 or len(call.field("description") or "") > 100:
        raise invalid("Label", "name" if len(name) > 50 else "description", "invalid")
    if color is not None and not re.fullmatch(r"[0-9a-fA-F]{6}", color):
        raise invalid("Label", "color", "invalid")
    if name.lower() in here.labels:
        raise invalid("Label", "name", "already_exists")
    made: Label = world.state.label(
        here.full_name, name, color or "ededed", call.field("description")
    )
    return Reply(201, world.bodies.label(here.full_name, made))


ROUTES = (
    Route("GET", "/repos/{owner}/{repo}", METADATA, get_repository),
    Route(
        "GET", "/repos/{owner}/{repo}/collaborators/{username}/permission", METADATA, get_permission
    ),
    Route("GET", "/repos/{owner}/{repo}/contents/{path}", CONTENTS, get_content),
    Route("GET", "/repos/{owner}/{repo}/commits/{ref}", CONTENTS, get_commit),
    Route("GET", "/repos/{owner}/{repo}/labels", READ, list_labels),
    Route("POST", "/repos/{owner}/{repo}/labels", WRITE, create_label),
    Route("GET", "/repos/{owner}/{repo}/labels/{name}", READ, get_label),
)
