"""How GitHub shows its things as JSON, in answers and webhook payloads alike, with every field
its description asks for.
"""

from __future__ import annotations

import base64
from urllib.parse import quote

from tests.support.server.links import REPOSITORY_LINKS, USER_LINKS
from tests.support.server.records import (
    App,
    Comment,
    Installation,
    Issue,
    Json,
    Label,
    Reaction,
    Repository,
    User,
    stamp,
)
from tests.support.server.state import State

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")
LEGACY = {
    "admin": "admin",
    "maintain": "write",
    "write": "write",
    "triage": "read",
    "read": "read",
    "none": "none",
}


def node(kind: str, number: int) -> str:
    """A node id: opaque to whoever reads it."""
    return base64.b64encode(f"{kind}:{number}".encode()).decode()


class Bodies:
    """Shows the things of a state. `web` and `api` are the addresses that links start with."""

    def __init__(self, state: State, web: str, api: str) -> None:
        self._state = state
        self.web = web
        self.api = api

    def user(self, login: str) -> Json:
        """A simple user."""
        user: User = self._state.user(login)
        page = (
            f"{self.web}/apps/{login.removesuffix('[bot]')}"
            if user.type == "Bot"
            else f"{self.web}/{login}"
        )
        url = f"{self.api}/users/{quote(user.login)}"
        return {
            "login": user.login,
            "id": user.id,
            "node_id": node(user.type, user.id),
            "avatar_url": f"{self.web}/avatars/u/{user.id}?v=4",
            "gravatar_id": "",
            "url": url,
            "html_url": page,
            **{key: url + tail for key, tail in USER_LINKS.items()},
            "type": user.type,
            "site_admin": False,
            "user_view_type": "public",
        }

    def organization(self, login: str) -> Json:
        """An organisation, as webhooks show it."""
        one, url = self._state.user(login), f"{self.api}/orgs/{quote(login)}"
        tails = {
            "hooks": "/hooks",
            "issues": "/issues",
            "members": "/members{/member}",
            "public_members": "/public_members{/member}",
        }
        return {
            "login": one.login,
            "id": one.id,
            "node_id": node("Organization", one.id),
            "url": url,
            "repos_url": f"{url}/repos",
            "events_url": f"{url}/events",
            **{f"{name}_url": url + tail for name, tail in tails.items()},
            "avatar_url": f"{self.web}/avatars/u/{one.id}?v=4",
            "description": None,
        }

    def app(self, app: App, *, full: bool = False) -> Json:
        """An App; `full` with what only the App itself is told."""
        shown = {
            "id": app.id,
            "client_id": f"Iv23li{app.id:014d}",
            "slug": app.slug,
            "node_id": node("App", app.id),
            "owner": self.user(app.owner),
            "name": app.name,
            "description": "",
            "external_url": self.web,
            "html_url": f"{self.web}/apps/{app.slug}",
            "created_at": stamp(app.created_at),
            "updated_at": stamp(app.created_at),
            "permissions": app.permissions,
            "events": app.events,
        }
        return {**shown, "installations_count": len(self._state.installations)} if full else shown

    def installation(self, one: Installation) -> Json:
        """An installation, in full."""
        account = self._state.user(one.account, "Organization")
        return {
            "id": one.id,
            "account": self.user(one.account),
            "repository_selection": "selected",
            "access_tokens_url": f"{self.api}/app/installations/{one.id}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.web}/organizations/{one.account}/settings/installations/{one.id}",
            "app_id": self._state.app.id,
            "app_slug": self._state.app.slug,
            "target_id": account.id,
            "target_type": account.type,
            "permissions": one.permissions,
            "events": self._state.app.events,
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.created_at),
            "single_file_name": None,
            "has_multiple_single_files": False,
            "single_file_paths": [],
            "suspended_by": None,
            "suspended_at": stamp(one.created_at) if one.suspended else None,
        }

    def repository(self, one: Repository) -> Json:
        """A repository, in full."""
        url, page, at = (
            f"{self.api}/repos/{one.full_name}",
            f"{self.web}/{one.full_name}",
            stamp(one.created_at),
        )
        open_issues = sum(1 for issue in one.issues.values() if issue.state == "open")
        switches = {
            f"has_{what}": what == "issues"
            for what in ("issues", "projects", "wiki", "pages", "discussions", "downloads")
        }
        host = self.web.partition("://")[2]
        return {
            "id": one.id,
            "node_id": node("Repository", one.id),
            "name": one.name,
            "full_name": one.full_name,
            "owner": self.user(one.owner),
            "private": one.private,
            "visibility": "private" if one.private else "public",
            "html_url": page,
            "description": None,
            "url": url,
            **{key: url + tail for key, tail in REPOSITORY_LINKS.items()},
            "git_url": f"git://{host}/{one.full_name}.git",
            "ssh_url": f"git@{host}:{one.full_name}.git",
            "clone_url": f"{page}.git",
            "svn_url": page,
            **dict.fromkeys(("mirror_url", "homepage", "language", "license"), None),
            **dict.fromkeys(("disabled", "is_template", "web_commit_signoff_required"), False),
            "fork": one.fork,
            "archived": one.archived,
            **dict.fromkeys(
                ("forks_count", "stargazers_count", "watchers_count", "size", "forks", "watchers"),
                0,
            ),
            **dict.fromkeys(("subscribers_count", "network_count"), 0),
            **switches,
            "allow_forking": True,
            "topics": [],
            "custom_properties": {},
            "default_branch": one.default_branch,
            "open_issues_count": open_issues,
            "open_issues": open_issues,
            "pushed_at": at,
            "created_at": at,
            "updated_at": at,
        }

    def label(self, repository: str, one: Label) -> Json:
        """A label."""
        return {
            "id": one.id,
            "node_id": node("Label", one.id),
            "url": f"{self.api}/repos/{repository}/labels/{quote(one.name, safe='')}",
            "name": one.name,
            "description": one.description,
            "color": one.color,
            "default": False,
        }

    def reaction(self, one: Reaction) -> Json:
        """A reaction."""
        shown = {"id": one.id, "node_id": node("Reaction", one.id), "user": self.user(one.user)}
        return {**shown, "content": one.content, "created_at": stamp(one.created_at)}

    def issue(self, repository: Repository, one: Issue) -> Json:
        """An issue."""
        name = repository.full_name
        url, page = (
            f"{self.api}/repos/{name}/issues/{one.number}",
            f"{self.web}/{name}/issues/{one.number}",
        )
        body = {
            "url": url,
            "repository_url": f"{self.api}/repos/{name}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": page,
            "id": one.id,
            "node_id": node("Issue", one.id),
            "number": one.number,
            "title": one.title,
            "user": self.user(one.author),
            "labels": [self.label(name, repository.labels[each.lower()]) for each in one.labels],
            "state": one.state,
            "locked": one.locked,
            **dict.fromkeys(
                (
                    "assignee",
                    "milestone",
                    "closed_at",
                    "active_lock_reason",
                    "state_reason",
                    "type",
                ),
                None,
            ),
            "assignees": [],
            "comments": len(self._state.conversation(name, one.number)),
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.updated_at),
            "author_association": self._association(repository, one.author),
            "body": one.body,
            "reactions": self._rollup(url, one.reactions),
            "performed_via_github_app": None,
        }
        if one.pull_request:
            pull, page = (
                f"{self.api}/repos/{name}/pulls/{one.number}",
                f"{self.web}/{name}/pull/{one.number}",
            )
            links = {
                "url": pull,
                "html_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
            }
            body |= {"pull_request": {**links, "merged_at": None}, "draft": False, "html_url": page}
        return body

    def comment(self, repository: Repository, one: Comment) -> Json:
        """A comment on an issue."""
        name = repository.full_name
        url = f"{self.api}/repos/{name}/issues/comments/{one.id}"
        return {
            "url": url,
            "html_url": f"{self.web}/{name}/issues/{one.number}#issuecomment-{one.id}",
            "issue_url": f"{self.api}/repos/{name}/issues/{one.number}",
            "id": one.id,
            "node_id": node("IssueComment", one.id),
            "user": self.user(one.author),
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.updated_at),
            "author_association": self._association(repository, one.author),
            "body": one.body,
            "reactions": self._rollup(url, one.reactions),
            "performed_via_github_app": self.app(self._state.app) if one.app else None,
        }

    def permission(self, repository: Repository, login: str) -> Json:
        """What someone may do: on a public repository anyone may read."""
        role = repository.roles.get(login.lower(), "none" if repository.private else "read")
        if login.lower() == repository.owner.lower():
            role = "admin"
        legacy = LEGACY[repository.bases.get(role, role)]
        ranks = ("read", "triage", "write", "maintain", "admin")
        may = (
            ranks.index(role)
            if role in ranks
            else {"none": -1, "read": 0, "write": 2, "admin": 4}[legacy]
        )
        words = ("pull", "triage", "push", "maintain", "admin")
        user = {
            **self.user(login),
            "role_name": role,
            "permissions": {word: may >= rank for rank, word in enumerate(words)},
        }
        return {"permission": legacy, "role_name": role, "user": user}

    def _association(self, repository: Repository, login: str) -> str:
        if login.lower() == repository.owner.lower():
            return "OWNER"
        return "COLLABORATOR" if login.lower() in repository.roles else "NONE"

    def _rollup(self, url: str, reactions: list[Reaction]) -> Json:
        each = {name: sum(1 for one in reactions if one.content == name) for name in REACTIONS}
        return {"url": f"{url}/reactions", "total_count": len(reactions), **each}
