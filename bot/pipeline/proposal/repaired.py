"""`of_repair(found, repository)`: a proven repair of a program as a change of the repository's own
file, where the program is one of its files.
"""

from collections.abc import Iterator
from hashlib import sha1
from pathlib import PurePosixPath

from bot.errors import UserError
from bot.models.pull_request import REGULAR, RepositoryPatch, TreeEntry
from bot.models.repair import Repair
from bot.pipeline.proposal.files import RepositoryFiles
from bot.rules.regression import diffs, paths

_MOST_READ = 20


def of_repair(found: Repair, repository: RepositoryFiles) -> RepositoryPatch:
    """The change of the one file that is the program: it has the same text, or the same name and
    the lines that the diff meets. Raises UserError where there is none, with the reason for people.
    """
    if not found.proven:
        raise UserError("The patch of the repair is not proven to help, so it is not proposed.")
    same = [entry for entry in _python(repository) if _is(entry, found.source, repository)]
    changes = list(_changes(found.diff, same or _namesakes(found.diff, repository), repository))
    if not changes:
        raise UserError(
            "The program in this issue is not a file of this repository, so there is nothing to "
            "change here."
        )
    if len(changes) > 1:
        names = " and ".join(path for path, _, _ in changes[:2])
        raise UserError(f"Several files of this repository are the program: {names}.")
    path, before, after = changes[0]
    return RepositoryPatch(path=path, text=after, diff=diffs.unified(path, before, after))


def _changes(
    diff: str, entries: list[TreeEntry], repository: RepositoryFiles
) -> Iterator[tuple[str, str, str]]:
    for entry in entries[:_MOST_READ]:
        before = repository.text(entry.path, paths.MOST_PATCHED)
        after = diffs.applied(diff, before) if before is not None else None
        if before is not None and after is not None:
            yield entry.path, before, after


def _python(repository: RepositoryFiles) -> list[TreeEntry]:
    return [
        entry
        for entry in repository.entries
        if entry.mode in REGULAR and not paths.refusal(entry.path, patched=True)
    ]


def _namesakes(diff: str, repository: RepositoryFiles) -> list[TreeEntry]:
    name = PurePosixPath(diffs.named(diff)).name
    return [each for each in _python(repository) if PurePosixPath(each.path).name == name]


def _is(entry: TreeEntry, program: str, repository: RepositoryFiles) -> bool:
    """Whether a file is the program, but for the line ends at its end, which a quote may lose. By
    git's id of it where that is known: nothing is read.
    """
    bare = program.rstrip("\n")
    if not bare or not 0 <= entry.size - len(bare.encode()) <= 1:
        return False
    raw = (bare + "\n" * (entry.size - len(bare.encode()))).encode()
    if entry.sha:
        return (
            entry.sha == sha1(b"blob %d\0%b" % (len(raw), raw), usedforsecurity=False).hexdigest()
        )
    return repository.text(entry.path, paths.MOST_PATCHED) == raw.decode()
