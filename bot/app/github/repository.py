"""A repository over REST, with one token for contents and pull requests: files become blobs, a tree
and a commit on GitHub's side, so that nothing is checked out here.
"""

import base64
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from typing_extensions import override

from bot.app.github import http
from bot.app.github.http import ApiResponse, RestClient, parse_answer, problem
from bot.app.ports import PullRequest, RepositoryState, RepositoryWriter, Target, Write
from bot.kernel.errors import TransientError, UserError
from bot.kernel.run import ProposedFile, TreeEntry

T = TypeVar("T")

_MOST_ENTRIES = 100_000


class GitHubRepository(RepositoryWriter):
    """The repository `target` with a token that covers it alone. `request` encloses each request
    and is called with what it writes; `login` is who the App is.
    """

    def __init__(
        self,
        client: RestClient,
        token: str,
        target: Target,
        login: str,
        request: Callable[[Write | None], AbstractContextManager[None]],
    ) -> None:
        self._client, self._token, self._login = client, token, login
        self._home, self._owner = http.repository(target), http.names(target)[0]
        self._request, self._name = request, target.repository

    @override
    def state(self) -> RepositoryState:
        data = self._get("", lambda data: data)
        return RepositoryState(
            default_branch=data["default_branch"],
            head=self.branch(data["default_branch"]),
            fork=data["fork"] is True,
            archived=data["archived"] is True,
        )

    @override
    def issue_open(self, number: int) -> bool:
        return self._get(f"/issues/{number:d}", lambda data: str(data["state"])) == "open"

    @override
    def entries(self, commit: str) -> tuple[TreeEntry, ...]:
        rows, cut = self._get(
            f"/git/trees/{commit}", lambda data: (_entries(data), data["truncated"]), recursive="1"
        )
        if cut or len(rows) > _MOST_ENTRIES:
            raise UserError("It has too many files to list.", "Use reprise pr on a checkout.")
        return rows

    @override
    def text(self, entry: TreeEntry) -> str | None:
        raw: bytes = self._get(
            f"/git/blobs/{entry.sha}", lambda data: base64.b64decode(data["content"])
        )
        try:
            return raw.decode() if b"\0" not in raw else None
        except UnicodeDecodeError:
            return None

    @override
    def branch(self, name: str) -> str:
        path = f"/git/ref/{http.segment(f'heads/{name}')}"
        answer = self._ask("GET", path, expected={404, 409})  # 409: there is no commit at all
        return self._read(answer, path, _sha) if answer.ok else ""

    @override
    def others(self, base: str, head: str) -> int:
        def foreign(data: Any) -> int:
            unseen = int(data["total_commits"]) - len(data["commits"])
            return unseen + sum(not self._mine(commit) for commit in data["commits"])

        return self._get(f"/compare/{base}...{head}", foreign)

    def _mine(self, commit: Any) -> bool:
        author = commit.get("author") or {}
        return str(author.get("login")).lower() == self._login.lower()

    @override
    def commit(self, base: str, files: Sequence[ProposedFile], above: str, message: str) -> str:
        under = self._get(f"/git/commits/{base}", lambda data: str(data["tree"]["sha"]))
        rows = [
            {"path": file.path, "mode": file.mode, "type": "blob", "content": file.text}
            for file in files
        ]
        tree_answer = self._write("POST", "/git/trees", {"base_tree": under, "tree": rows})
        tree = self._read(tree_answer, "/git/trees", lambda data: str(data["sha"]))
        if above and tree == self._get(
            f"/git/commits/{above}", lambda data: str(data["tree"]["sha"])
        ):
            return above
        body = {"message": message, "tree": tree, "parents": self._parents(base, above)}
        commit_answer = self._write("POST", "/git/commits", body)
        return self._read(commit_answer, "/git/commits", lambda data: str(data["sha"]))

    def _parents(self, base: str, above: str) -> list[str]:
        """The branch goes forward; where the default branch has moved on, it is merged."""
        if not above:
            return [base]
        behind = self._get(f"/compare/{base}...{above}", lambda data: int(data["behind_by"]))
        return [above, base] if behind else [above]

    @override
    def point(self, branch: str, commit: str, *, new: bool) -> None:
        if new:
            body = {"ref": f"refs/heads/{branch}", "sha": commit}
            answer = self._write("POST", "/git/refs", body, expected={409, 422})
        else:
            path = f"/git/refs/{http.segment(f'heads/{branch}')}"
            request_body: dict[str, Any] = {"sha": commit, "force": False}
            answer = self._write("PATCH", path, request_body, expected={409, 422})
        message = answer.message.lower()
        if "already exists" in message or "fast forward" in message:
            raise TransientError(f"The branch {branch} has changed meanwhile.")
        if not answer.ok:  # a rule of the repository, or a branch that is called as its folder
            raise problem(answer, f"the branch {branch}")

    @override
    def pulls(self, branch: str) -> tuple[PullRequest, ...]:
        head = f"{self._owner}:{branch}"
        return self._get("/pulls", _pulls, head=head, state="all", per_page="100")

    @override
    def open_pull(self, branch: str, base: str, title: str, body: str) -> int:
        request_body: dict[str, Any] = {
            "title": title,
            "body": body,
            "head": branch,
            "base": base,
            "draft": True,
        }
        answer = self._write("POST", "/pulls", request_body, notifies=True, expected={422})
        if answer.status == 422 and "already exists" in str(answer.data):
            raise TransientError("The branch has a pull request already.")
        if answer.status == 422 and "draft" in answer.message.lower():
            raise UserError(
                "GitHub has no draft pull requests in this repository.",
                "Use reprise pr on a checkout, or a plan with drafts.",
            )
        if not answer.ok:
            raise problem(answer, "POST /pulls")
        return self._read(answer, "/pulls", lambda data: int(data["number"]))

    @override
    def edit_pull(self, number: int, title: str, body: str) -> None:
        self._write("PATCH", f"/pulls/{number:d}", {"title": title, "body": body})

    @override
    def close_pull(self, number: int) -> None:
        self._write("PATCH", f"/pulls/{number:d}", {"state": "closed"})

    def revoke(self) -> None:
        """End the token before its hour is over; an error is no matter."""
        try:
            self._client.request("DELETE", "/installation/token", token=self._token)
        except TransientError:
            return

    def _get(self, path: str, take: Callable[[Any], T], **params: str) -> T:
        return self._read(self._ask("GET", path, params=params or None), path, take)

    def _read(self, answer: ApiResponse, path: str, take: Callable[[Any], T]) -> T:
        return parse_answer(answer, f"{self._home}{path}", partial(take, answer.data))

    def _write(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        *,
        notifies: bool = False,
        expected: Collection[int] = (),
    ) -> ApiResponse:
        write = Write(what="pull request", where=self._name, notifies=notifies)
        return self._ask(method, path, write=write, body=body, expected=expected)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        write: Write | None = None,
        expected: Collection[int] = (),
        **options: Any,
    ) -> ApiResponse:
        place = f"{self._home}{path}"
        with self._request(write):
            answer = self._client.request(method, place, token=self._token, **options)
            if not answer.ok and answer.status not in expected:
                raise problem(answer, f"{method} {place}")
        return answer


def _sha(data: Any) -> str:
    return str(data["object"]["sha"])


def _entries(data: Any) -> tuple[TreeEntry, ...]:
    return tuple(
        TreeEntry(path=row["path"], mode=row["mode"], size=row.get("size", 0), sha=row["sha"])
        for row in data["tree"]
    )


def _pulls(data: Any) -> tuple[PullRequest, ...]:
    return tuple(
        PullRequest(number=row["number"], state="merged" if row["merged_at"] else row["state"])
        for row in data
    )
