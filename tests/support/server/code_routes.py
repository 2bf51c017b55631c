"""Git's own objects over REST: references, trees, blobs and commits, and how two commits compare."""

from __future__ import annotations

import base64
import subprocess
from typing import Any

from tests.support.server.bodies import node
from tests.support.server.call import Call, Refusal, Reply, World, not_found, the_repository
from tests.support.server.records import Json, Repository
from tests.support.server.routing import CONTENTS, PUSH, Route

LARGEST = 100 * 1_048_576
MOST_COMMITS = 250
_WHO = {"date": "2026-01-01T00:00:00Z"}


def get_ref(world: World, call: Call) -> Reply:
    """A branch, by its whole name."""
    here, name = the_repository(world, call), call.params["ref"]
    sha = world.git.resolve(here, f"refs/{name}")
    if not sha:
        raise not_found()
    return Reply(200, _ref(world, here, name, sha))


def create_ref(world: World, call: Call) -> Reply:
    """A new branch; 422 when there is one."""
    here, name, sha = the_repository(world, call), str(call.field("ref")), str(call.field("sha"))
    if not name.startswith("refs/heads/") or not world.git.resolve(here, sha):
        raise Refusal(422, "Object does not exist")
    if world.git.resolve(here, name):
        raise Refusal(422, "Reference already exists")
    try:
        world.git.move(here, name.removeprefix("refs/heads/"), sha)
    except subprocess.CalledProcessError:
        raise Refusal(422, "Reference update failed") from None
    return Reply(201, _ref(world, here, name.removeprefix("refs/"), sha))


def update_ref(world: World, call: Call) -> Reply:
    """Move a branch forward; 422 when that is no fast-forward and is not forced."""
    here, name, sha = the_repository(world, call), call.params["ref"], str(call.field("sha"))
    before = world.git.resolve(here, f"refs/{name}")
    if not before or not world.git.resolve(here, sha):
        raise Refusal(422, "Reference does not exist")
    if not call.field("force") and world.git.log(here, before, f"^{sha}"):
        raise Refusal(422, "Update is not a fast forward")
    world.git.move(here, name.removeprefix("heads/"), sha)
    return Reply(200, _ref(world, here, name, sha))


def get_tree(world: World, call: Call) -> Reply:
    """A tree; with `recursive` all below it."""
    here, sha = the_repository(world, call), call.params["tree_sha"]
    entries = world.git.tree(here, sha)
    if entries is None:
        raise not_found()
    whole = "recursive" in call.query
    shown = [each for each in entries if whole or "/" not in each.path]
    rows: list[Json] = []
    for each in shown:
        row: Json = {"path": each.path, "mode": each.mode, "type": each.kind, "sha": each.sha}
        row |= {"size": each.size} if each.kind == "blob" else {}
        rows.append(row | {"url": f"{_git(world, here)}/{each.kind}s/{each.sha}"})
    body = {"sha": sha, "url": f"{_git(world, here)}/trees/{sha}", "tree": rows}
    return Reply(200, body | {"truncated": False})


def get_blob(world: World, call: Call) -> Reply:
    """A blob as base64."""
    here, sha = the_repository(world, call), call.params["file_sha"]
    try:
        raw = world.git.blob(here, sha)
    except subprocess.CalledProcessError:
        raise not_found() from None
    if len(raw) > LARGEST:
        raise Refusal(403, "too large")
    body = {"sha": sha, "url": f"{_git(world, here)}/blobs/{sha}", "node_id": node("Blob", 1)}
    content = base64.encodebytes(raw).decode()
    return Reply(200, body | {"size": len(raw), "content": content, "encoding": "base64"})


def create_tree(world: World, call: Call) -> Reply:
    """A tree on top of another."""
    here, rows = the_repository(world, call), call.field("tree") or []
    files = [(row["mode"], row["path"], row.get("content") or "") for row in rows]
    try:
        sha = world.git.write_tree(here, call.field("base_tree") or "", files)
    except subprocess.CalledProcessError:
        raise Refusal(422, "GitRPC::BadObjectState") from None
    entries: list[Json] = [
        {"path": path, "mode": mode, "type": "blob", "sha": "0" * 40} for mode, path, _ in files
    ]
    body = {"sha": sha, "url": f"{_git(world, here)}/trees/{sha}", "truncated": False}
    return Reply(201, body | {"tree": entries})


def get_git_commit(world: World, call: Call) -> Reply:
    """A commit as git has it."""
    here, sha = the_repository(world, call), call.params["commit_sha"]
    if not world.git.resolve(here, sha):
        raise not_found()
    return Reply(200, _commit(world, here, sha))


def create_commit(world: World, call: Call) -> Reply:
    """A commit by whoever asks; the App's own when nobody is named."""
    here, author = the_repository(world, call), call.field("author")
    name = author["name"] if author else world.state.app.login
    parents = [str(each) for each in call.field("parents") or []]
    message = str(call.field("message"))
    try:
        sha = world.git.write_commit(here, str(call.field("tree")), parents, message, name)
    except subprocess.CalledProcessError:
        raise Refusal(422, "Tree SHA does not exist") from None
    return Reply(201, _commit(world, here, sha))


def compare(world: World, call: Call) -> Reply:
    """The commits that the second one has and the first has not, oldest first."""
    here = the_repository(world, call)
    base, _, head = call.params["basehead"].partition("...")
    ids = [world.git.resolve(here, name) for name in (base, head)]
    if not all(ids):
        raise not_found()
    ahead = world.git.log(here, "--reverse", ids[1], f"^{ids[0]}")
    behind = world.git.log(here, ids[0], f"^{ids[1]}")
    status = ("diverged" if behind else "ahead") if ahead else "behind" if behind else "identical"
    url = f"{world.bodies.api}/repos/{here.full_name}/compare/{ids[0]}...{ids[1]}"
    links = dict.fromkeys(("url", "html_url", "permalink_url", "diff_url", "patch_url"), url)
    counts = {"ahead_by": len(ahead), "behind_by": len(behind), "total_commits": len(ahead)}
    commits = [_full(world, here, sha) for sha in ahead[:MOST_COMMITS]]
    bases = {f"{name}_commit": _full(world, here, ids[0]) for name in ("base", "merge_base")}
    return Reply(200, {**links, **bases, **counts, "status": status, "commits": commits})


def _git(world: World, here: Repository) -> str:
    return f"{world.bodies.api}/repos/{here.full_name}/git"


def _ref(world: World, here: Repository, name: str, sha: str) -> Json:
    git = _git(world, here)
    thing = {"type": "commit", "sha": sha, "url": f"{git}/commits/{sha}"}
    shown = {"ref": f"refs/{name}", "node_id": node("Ref", 1), "url": f"{git}/refs/{name}"}
    return shown | {"object": thing}


def _commit(world: World, here: Repository, sha: str) -> Json:
    tree, parents, author, message = world.git.commit_of(here, sha)
    git, page = _git(world, here), f"{world.bodies.web}/{here.full_name}/commit"
    who = {"name": author, "email": f"{author}@users.noreply.github.com", **_WHO}
    above = [
        {"sha": each, "url": f"{git}/commits/{each}", "html_url": f"{page}/{each}"}
        for each in parents
    ]
    verification: Json = {"verified": True, "reason": "valid", "signature": None, "payload": None}
    return {
        "sha": sha,
        "node_id": node("Commit", 1),
        "url": f"{git}/commits/{sha}",
        "html_url": f"{page}/{sha}",
        "author": who,
        "committer": who,
        "tree": {"sha": tree, "url": f"{git}/trees/{tree}"},
        "message": message,
        "parents": above,
        "verification": {**verification, "verified_at": None},
    }


def _full(world: World, here: Repository, sha: str) -> Json:
    """A commit as lists of commits show it: with the accounts behind the names in it."""
    plain = _commit(world, here, sha)
    name = plain["author"]["name"]
    account: Any = world.bodies.user(name) if name.lower() in world.state.users else None
    if name == world.state.app.login:
        account = world.bodies.user(name)
    url = f"{world.bodies.api}/repos/{here.full_name}/commits/{sha}"
    inner = {key: plain[key] for key in ("author", "committer", "message", "tree", "url")}
    return {
        "url": url,
        "sha": sha,
        "node_id": node("Commit", 1),
        "html_url": plain["html_url"],
        "comments_url": f"{url}/comments",
        "commit": {**inner, "comment_count": 0},
        "author": account,
        "committer": account,
        "parents": plain["parents"],
    }


_REPO = "/repos/{owner}/{repo}"

ROUTES = (
    Route("GET", f"{_REPO}/git/ref/{{ref}}", CONTENTS, get_ref),
    Route("POST", f"{_REPO}/git/refs", PUSH, create_ref),
    Route("PATCH", f"{_REPO}/git/refs/{{ref}}", PUSH, update_ref),
    Route("GET", f"{_REPO}/git/trees/{{tree_sha}}", CONTENTS, get_tree),
    Route("POST", f"{_REPO}/git/trees", PUSH, create_tree),
    Route("GET", f"{_REPO}/git/blobs/{{file_sha}}", CONTENTS, get_blob),
    Route("GET", f"{_REPO}/git/commits/{{commit_sha}}", CONTENTS, get_git_commit),
    Route("POST", f"{_REPO}/git/commits", PUSH, create_commit),
    Route("GET", f"{_REPO}/compare/{{basehead}}", CONTENTS, compare),
)
