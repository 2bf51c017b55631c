"""The commit whose files have the lines that a report's traceback quotes: reporters run a state of
the repository that is seldom that of the day on which they write.
"""

from collections.abc import Iterator
from itertools import islice

from bot.environment import releases
from bot.issues.runner import IssueSession
from bot.kernel.bug import BugReport, Commit, Frame
from bot.kernel.environment import RepoSource
from bot.kernel.ports import Commits
from bot.kernel.trees import Tree, tree_files

_MOST_CHANGES = 40
_MOST_FRAMES = 20
_MOST_TRACEBACKS = 8


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
