"""SOURCE → Issue: an issue's address, owner/repo#N, a saved JSON or Markdown file, standard
input, or the bundled example.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from pydantic import TypeAdapter, ValidationError

from bot.app.github.http import ApiResponse, RestClient
from bot.kernel.bug import DAY_END, Issue
from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings

# A saved issue → Issue: what the GitHub API or a webhook sent, what `gh issue view --json`
# printed, or a Markdown file.

_FRONT = re.compile(
    r"^(Repository|Repo|Created|Created at|Date|Author|Labels|Number|Issue|URL)"
    r"[ \t]*:[ \t]*(\S.*)$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SLUG = re.compile(r"^[\w.-]+/[\w.-]+$", re.ASCII)
_CLONE = re.compile(r"^https?://[\w.-]+(?::\d+)?/[\w./~-]+$", re.ASCII)
_SHAPE = "An issue as the GitHub API returns it has at least a title and a body."
_moment = TypeAdapter(datetime)


def from_text(text: str, name: str) -> Issue:
    """JSON when it looks like it (or is named so), else Markdown. `name` is how the source is
    called in messages.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise UserError(
            f"{name} is empty.",
            "Pass the text of an issue: a Markdown file or a saved GitHub issue.",
        )
    if name.lower().endswith(".json") or (
        text.lstrip()[0] == "{" and not name.lower().endswith((".md", ".markdown"))
    ):
        return from_json(text, name)
    return from_markdown(text)


def from_json(text: str, name: str) -> Issue:
    """An issue object of the API, or a webhook delivery that holds one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = (
            f" (line {error.lineno}: {error.msg})"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        raise UserError(
            f"{name} is not valid JSON{where}.",
            "Save the issue again, or pass it as a Markdown file.",
        ) from None
    if isinstance(data, list):
        raise UserError(
            f"{name} contains a list of {len(data)}, not one issue.",
            "Save one issue to a file of its own.",
        )
    if not isinstance(data, dict):
        raise UserError(f"{name} does not contain an issue.", _SHAPE)
    return from_object(data, name)


def _whole(text: str) -> str:
    """JSON can name half a character; such a text could be neither stored nor shown."""
    return text.encode("utf-8", "replace").decode()


def from_object(data: Mapping[str, Any], name: str) -> Issue:
    """The same from parsed JSON; an answer of the API passes here too."""
    inner = data.get("issue")
    issue = inner if isinstance(inner, dict) else data
    title, body = issue.get("title"), issue.get("body")
    if not isinstance(title, str) or not isinstance(body, str | None):
        raise UserError(f"{name} does not contain an issue: it has no title or no body.", _SHAPE)
    if issue.get("pull_request"):
        raise UserError(
            f"{name} is a pull request, not an issue.", "Pass the issue that it belongs to."
        )
    repository = data.get("repository") or issue.get("repository")
    fields: dict[str, Any] = repository if isinstance(repository, dict) else {}
    url = _text(issue.get("html_url")) or _text(issue.get("url"))
    clone_url = _text(fields.get("clone_url"))
    number = issue.get("number")
    return Issue(
        title=_whole(title),
        body=_whole(body or ""),
        repository=_slug(
            repository if isinstance(repository, str) else _text(fields.get("full_name")), issue
        ),
        number=number if isinstance(number, int) else None,
        author=_login(issue),
        created_at=_when(issue.get("created_at") or issue.get("createdAt")),
        labels=_labels(issue.get("labels")),
        url=url if urlsplit(url).scheme in {"http", "https"} else "",
        clone_url=clone_url if _CLONE.match(clone_url) else "",
    )


def _slug(slug: str, issue: Mapping[str, Any]) -> str:
    """The repository as stated, else as the issue's addresses imply."""
    if _SLUG.match(slug):
        return slug
    for key in ("repository_url", "html_url", "url"):
        parts = [part for part in urlsplit(_text(issue.get(key))).path.split("/") if part]
        if "repos" in parts:
            parts = parts[parts.index("repos") + 1 :]
        if len(parts) >= 2 and _SLUG.match("/".join(parts[:2])):
            return "/".join(parts[:2])
    return ""


def _text(value: object) -> str:
    return _whole(value) if isinstance(value, str) else ""


def _login(issue: Mapping[str, Any]) -> str:
    user = issue.get("user") or issue.get("author")
    return _text(user.get("login")) if isinstance(user, dict) else _text(user)


def _labels(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    names = (_text(item.get("name")) if isinstance(item, dict) else _text(item) for item in items)
    return tuple(name for name in names if name)


def _when(value: object) -> datetime | None:
    try:
        moment = _moment.validate_python(value)
    except ValidationError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Midnight is how a day alone is written: what came on that day counts.
    is_day = moment.time() == time()
    return datetime.combine(moment, DAY_END, moment.tzinfo) if is_day else moment


def from_markdown(text: str) -> Issue:
    """The first `# heading` is the title; lines near it such as `Repository: owner/name` or
    `Created: 2024-05-01` give the rest.

    Without a heading the first line with words is the title, and stays in the body too.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = _title_line(lines)
    heading = _HEADING.match(lines[at])
    front: dict[str, str] = {}
    rest = lines[:at] + lines[at + 1 :] if heading else lines
    while rest and (not rest[0].strip() or (match := _FRONT.match(rest[0]))):
        if rest[0].strip() and match:
            front[match.group(1).lower()] = match.group(2).strip()
        rest = rest[1:]
    title = heading.group(1).strip() if heading else lines[at].strip()[:200]
    slug = front.get("repository") or front.get("repo") or ""
    number = front.get("number") or front.get("issue") or ""
    url = front.get("url", "")
    return Issue(
        title=title,
        body="\n".join(rest).rstrip() + "\n",
        repository=_slug(slug, {"html_url": url}),
        number=int(number.lstrip("#")) if re.fullmatch(r"#?\d{1,9}", number, re.ASCII) else None,
        author=front.get("author", ""),
        created_at=_when(front.get("created") or front.get("created at") or front.get("date")),
        labels=tuple(
            label.strip() for label in front.get("labels", "").split(",") if label.strip()
        ),
        url=url if urlsplit(url).scheme in {"http", "https"} else "",
    )


def _title_line(lines: list[str]) -> int:
    """The first heading of the first level outside a fence, else the first line that is neither
    blank nor a front line.
    """
    fence = ""
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            fence = ""
        elif not fence and _HEADING.match(line):
            return index
    return next(
        (index for index, line in enumerate(lines) if line.strip() and not _FRONT.match(line)), 0
    )


# Issues over the GitHub REST API, read only: one GET, with a token or without. The token goes to
# the API's own host and nowhere else.

if TYPE_CHECKING:
    import httpx

_SHORT = re.compile(r"^([\w-][\w.-]*)/([\w.-]+)#(\d{1,9})$", re.ASCII)
_PATH = re.compile(r"^/([\w-][\w.-]*)/([\w.-]+)/(issues|pull)/(\d{1,9})/?$", re.ASCII)
_MOST_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 307, 308})
_OFFLINE = "Check the network and the proxy settings, or pass the issue as a file."
_WRONG_API = "Check REPRISE_GITHUB_API_URL."
_MISSING = frozenset({403, 404, 451})


@dataclass(frozen=True, slots=True)
class IssueReference:
    """The repository and number of an issue."""

    owner: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}#{self.number}"


def reference(source: str, github_url: str) -> IssueReference | None:
    """The issue that a URL or owner/repo#N names; None when the source is something else."""
    if short := _SHORT.match(source):
        return IssueReference(short.group(1), short.group(2), int(short.group(3)))
    parts = urlsplit(source)
    if parts.scheme not in {"http", "https"}:
        return None
    host = urlsplit(github_url).hostname or ""
    if (parts.hostname or "") not in {host, f"www.{host}"}:
        raise UserError(
            f"{parts.hostname or source} is not the GitHub host that Reprise uses ({host}).",
            "For a GitHub Enterprise Server set REPRISE_GITHUB_URL and REPRISE_GITHUB_API_URL. "
            "Save an issue from another host to a file.",
        )
    match = _PATH.match(parts.path)
    if match is None or match.group(3) == "pull":
        what = "a pull request" if match else "not the address of an issue"
        raise UserError(
            f"{source} is {what}.",
            f"An issue's address looks like {github_url}/owner/name/issues/12.",
        )
    return IssueReference(match.group(1), match.group(2), int(match.group(4)))


class IssueReader:
    """Reads issues from one GitHub. `token` may be empty: then only public issues are visible."""

    def __init__(
        self,
        api_url: str,
        token: str = "",
        timeout_s: float = 20.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._api, self._token = api_url.rstrip("/"), token
        self._client = RestClient(self._api, timeout_s, transport=transport)

    def issue(self, where: IssueReference) -> Issue:
        """The issue in its present state. Raises UserError or TransientError with the next step."""
        repository = f"{where.owner}/{where.name}"
        answer = self._get(f"{self._api}/repos/{repository}/issues/{where.number}", where)
        if answer.status != 200:
            raise _problem(answer, where, with_token=bool(self._token))
        if not isinstance(answer.data, dict):
            raise UserError(f"The answer for {where} is not from the GitHub API.", _WRONG_API)
        issue = from_object(answer.data, str(where))
        return issue if issue.repository else issue.model_copy(update={"repository": repository})

    def _get(self, url: str, where: IssueReference) -> ApiResponse:
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                answer = self._client.request("GET", url, token=self._token)
            except TransientError as error:
                raise TransientError(str(error), _OFFLINE) from None
            if answer.status not in _REDIRECTS:
                return answer
            url = self._redirected(url, answer.headers.get("location", ""), where)
        raise TransientError(
            f"GitHub keeps redirecting {where}.",
            "Look the issue up in a browser and save it to a file.",
        )

    def _redirected(self, url: str, location: str, where: IssueReference) -> str:
        """The new address of a moved issue; the token must not follow it to another host."""
        try:
            target = urljoin(url, location)
            old, new = urlsplit(self._api), urlsplit(target)
        except ValueError:
            old, new = urlsplit(self._api), urlsplit("")
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            raise UserError(
                f"{where} has moved to another host.", "Use its new address, or save it to a file."
            )
        return target


def _problem(
    answer: ApiResponse, where: IssueReference, *, with_token: bool
) -> UserError | TransientError:
    status, headers = answer.status, answer.headers
    used_up = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    is_limited = status == 429 or (status == 403 and used_up)
    limit = f"GitHub's rate limit is used up{_until(answer)}."
    more = "" if with_token else ", or set REPRISE_GITHUB_TOKEN for a higher limit"
    unread = (
        "Check the address; the token may not be allowed to read it."
        if with_token
        else "Check the address. If it is private, set REPRISE_GITHUB_TOKEN to a token "
        "that may read it."
    )
    refusal = "Renew REPRISE_GITHUB_TOKEN, or unset it for public issues."
    failed = f"GitHub failed with status {status}."
    other = f"GitHub answers {status} for {where}."
    errors = (
        (is_limited, TransientError(limit, f"Wait{more}, or pass the issue as a file.")),
        (status >= 500, TransientError(failed, "Try again in a few minutes.")),
        (status == 401, UserError("GitHub refuses the token.", refusal)),
        (status in _MISSING, UserError(f"{where} was not found, or is private.", unread)),
        (status == 410, UserError(f"{where} was deleted.", "Pass a saved copy as a file.")),
        (True, UserError(other, f"Check the address. {_WRONG_API}")),
    )
    return next(error for applies, error in errors if applies)


def _until(answer: ApiResponse) -> str:
    if (after := answer.headers.get("retry-after", "")).isdigit():
        return f" for another {after} s"
    if (reset := answer.headers.get("x-ratelimit-reset", "")).isdigit() and len(reset) < 12:
        return f" until {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC"
    return ""


EXAMPLE = "example"
_MOST_BYTES = 5_000_000
_REPOSITORY = re.compile(r"^[\w.-]+/[\w-]+$")
_KINDS = (
    "A source is an issue's address, owner/repo#12, a Markdown or JSON file, "
    "or - for standard input."
)


def load(
    source: str,
    settings: Settings,
    *,
    stdin: BinaryIO | None = None,
    github: IssueReader | None = None,
) -> Issue:
    """The issue that a source names. Raises UserError or TransientError with the next step."""
    if source == EXAMPLE and not Path(source).exists():
        return example()
    if source == "-":
        return from_text(
            _decode((stdin or sys.stdin.buffer).read(_MOST_BYTES + 1), "Standard input"),
            "Standard input",
        )
    where = reference(source, settings.github_url)
    if where is not None:
        client = github or IssueReader(
            settings.github_api_url, settings.token, settings.network_timeout_s
        )
        return client.issue(where)
    return from_text(_read_text(Path(source)), source)


def example() -> Issue:
    """The issue that ships with Reprise."""
    return from_markdown(files("bot.data").joinpath("example.md").read_text(encoding="utf-8"))


def _read_text(path: Path) -> str:
    try:
        if path.is_dir():
            raise UserError(f"{path} is a folder, not an issue.", "Pass a file from it.")
        if path.suffix == ".py" and path.is_file():
            raise UserError(
                f"{path} is a program, not a bug report.",
                "Write a Markdown file that says what fails, with the program in a code block.",
            )
        with path.open("rb") as file:
            return _decode(file.read(_MOST_BYTES + 1), str(path))
    except FileNotFoundError:
        number = f"For an issue of a repository add its number: {path}#12."
        hint = number if _REPOSITORY.match(str(path)) else _KINDS
        raise UserError(f"There is no file {path}.", hint) from None
    except PermissionError:
        raise UserError(f"{path} is not readable.", "Check the permissions of the file.") from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{str(path)[:200]!r} cannot be read: {cause}.", _KINDS) from None


def _decode(data: bytes, name: str) -> str:
    if len(data) > _MOST_BYTES:
        raise UserError(
            f"{name} is too large for an issue (more than {_MOST_BYTES // 1_000_000} MB).",
            "Cut it down to the report.",
        )
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UserError(
            f"{name} is not text in UTF-8.", "Save the issue as Markdown or JSON in UTF-8."
        ) from None
    if "\0" in text:
        raise UserError(f"{name} is a binary file.", "Save the issue as Markdown or JSON.")
    return text
