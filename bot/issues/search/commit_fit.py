"""The commit whose files have the lines that a report's traceback quotes: reporters run a state of
the repository that is seldom that of the day on which they write.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import islice

from bot.environment import releases
from bot.issues.runner import IssueSession
from bot.kernel.bug import AnySignature, BugReport, Commit, CrashSignature, Frame, members_of
from bot.kernel.environment import RepoSource
from bot.kernel.errors import UserError
from bot.kernel.ports import Commits
from bot.kernel.source.syntax import bound_names, module_of
from bot.kernel.trees import Tree, tree_files

_MOST_CHANGES = 40
_MOST_FRAMES = 20
_MOST_TRACEBACKS = 8
_FRESH = timedelta(days=7)
"""How long before a report a fix may be that its author does not have."""
_MOST_ADDITIONS = 12
_MOST_TEXT, _NEAR, _DAY = 20_000, 60, timedelta(days=1)
_COMMIT_NAME = re.compile(
    r"\b(?:git|commit|sha1?|rev(?:ision)?|hash|head|version)\b[^\w\n]{0,6}"
    r"(?:(?:git|commit|sha1?|rev(?:ision)?|hash|id|is|at)\b[^\w\n]{0,6}){0,2}"
    r"(?P<id>(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40})\b",
    re.IGNORECASE,
)
_OTHER_STATE = re.compile(
    r"\b(?:fix|work|introduc|caus|regress|bisect|since|before|after|revert|merg|patch)\w*\b[^\n]*$",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"^(?:No module named '(?P<module>[A-Za-z_][\w.]{0,200})'"
    r"|cannot import name '(?P<name>\w{1,100})' from '(?P<home>[A-Za-z_][\w.]{0,200})')"
)


def named_commit(session: IssueSession, source: RepoSource) -> Commit | None:
    """The one commit that a report says it is about ("version: git 33023352e"), where the
    repository has it and it is no newer than the report; None for one that is said to work, to be
    the fix or the cause. Raises TransientError.
    """
    issue, commits = session.job.issue, session.ports.commits
    text = f"{issue.title}\n{issue.body}"[:_MOST_TEXT]
    ids = {
        match["id"].lower()
        for match in _COMMIT_NAME.finditer(text)
        if not _OTHER_STATE.search(text[max(0, match.start() - _NEAR) : match.start()])
    }
    if commits is None or len(ids) != 1:
        return None
    name, day = ids.pop(), issue.created_at
    try:
        commit = commits.commit(source, name)
    except UserError:
        return None
    is_newer = day is not None and commit.date is not None and commit.date - day > _DAY
    is_its_id = commit.id.startswith(name)  # and no branch or tag of that name
    return commit if is_its_id and not is_newer else None


def fitting_commit(
    session: IssueSession, bug: BugReport, source: RepoSource, commit: str, tree: Tree
) -> Commit | None:
    """The newest commit before `commit`, on the first-parent line, that has more of the lines which
    the report quotes of its files; None where the tree at `commit` has as many. Raises UserError
    and TransientError.
    """
    commits, frames = session.ports.commits, tuple(islice(_frames(bug, tree), _MOST_FRAMES))
    best = releases.count(frames, lambda path: tree.get(path, b"").decode("utf-8", "replace"))
    if commits is None or best == len(frames):
        return None
    paths, fitting_id = tuple(dict.fromkeys(frame.module_path for frame in frames)), ""
    for change in commits.changes(source, commit, paths, _MOST_CHANGES):
        count = _count_before(commits, source, change, paths, frames)
        if count > best:
            best, fitting_id = count, f"{change.id}^"
        if best == len(frames):
            break
    return commits.commit(source, fitting_id) if fitting_id else None


def _count_before(
    commits: Commits,
    source: RepoSource,
    change: Commit,
    paths: tuple[str, ...],
    frames: tuple[Frame, ...],
) -> int:
    texts = commits.texts(source, f"{change.id}^", paths)
    return releases.count(frames, lambda path: texts.get(path, ""))


def _frames(bug: BugReport, tree: Tree) -> Iterator[Frame]:
    """The frames that quote a line of a file of the tree, with that file's path; a file is the one
    whose path shares the longest end with the frame's.
    """
    for row in bug.tracebacks[:_MOST_TRACEBACKS]:
        for frame in row.frames[-_MOST_FRAMES:]:
            paths = tree_files(frame, tree)
            if paths and frame.line and frame.code.strip():
                yield frame.model_copy(update={"module_path": max(paths, key=len)})


def commit_without(
    session: IssueSession, signature: AnySignature, source: RepoSource, commit: str, tree: Tree
) -> Commit | None:
    """The last commit before `commit` that lacks a module, or a name of one, which the report does
    not find and the tree at `commit` has: what was added a few days before the report at most.
    Raises UserError and TransientError.
    """
    commits, day = session.ports.commits, session.job.issue.created_at
    for member in members_of(signature) if commits is not None and day is not None else ():
        match = _ABSENT.match(member.message) if isinstance(member, CrashSignature) else None
        paths = _module_files(match["module"] or match["home"], tree) if match else ()
        if commits is None or day is None or match is None or not paths:
            continue
        for change in commits.changes(source, commit, paths, _MOST_ADDITIONS):
            if change.date is None or day - change.date > _FRESH:
                break
            if not _has(commits.texts(source, f"{change.id}^", paths), match["name"]):
                return commits.commit(source, f"{change.id}^")
    return None


def _module_files(module: str, tree: Tree) -> tuple[str, ...]:
    """The files of a tree that are a module or, of a folder without `__init__.py`, lie in it."""
    plain = module.replace(".", "/")
    ends = (f"/{plain}.py", f"/{plain}/__init__.py")
    files = [path for path in tree if f"/{path}".endswith(ends)]
    inside = [path for path in tree if path.endswith(".py") and f"/{plain}/" in f"/{path}"]
    return tuple((files or inside)[:_MOST_FRAMES])


def _has(texts: Mapping[str, str], name: str | None) -> bool:
    """Whether there are files or, of a name, one that binds it."""
    if name is None:
        return bool(texts)
    return any(name in bound_names(module_of(text)) for text in texts.values())
