"""`of_repair(found, repository)`: a proven repair of a program as a change of the repository's own
files, where the program is one of them.
"""

from hashlib import sha1
from itertools import islice
from pathlib import PurePosixPath

from bot.errors import UserError
from bot.models.pull_request import REGULAR, FileChange, RepositoryPatch, TreeEntry
from bot.models.repair import Repair
from bot.pipeline.proposal.files import RepositoryFiles
from bot.rules.regression import diffs, paths

_MOST_READ = 20


def of_repair(found: Repair, repository: RepositoryFiles) -> RepositoryPatch:
    """The change of the file that is the program, and of the files beside it: the program has the
    same text, or the same name, and every file the lines that the diff meets. Raises
    UserError where there is none, with the reason for people.
    """
    if not found.proven:
        raise UserError("The patch of the repair is not proven to help, so it is not proposed.")
    same = [each for each in _python(repository) if _is(each, found.source, repository)]
    programs = same or _namesakes(found, repository)
    made = [_patch(found, each.path, repository) for each in programs[:_MOST_READ]]
    patches = [patch for patch in made if patch is not None]
    if not patches:
        raise UserError(
            "The program in this issue is not a file of this repository, so there is nothing to "
            "change here."
        )
    if len(patches) > 1:
        names = " and ".join(patch.program for patch in islice(patches, 2))
        raise UserError(f"Several files of this repository are the program: {names}.")
    return patches[0]


def _patch(found: Repair, program: str, repository: RepositoryFiles) -> RepositoryPatch | None:
    """The repair as a change of one program and what is beside it, None where it does not fit."""
    folder, changes = PurePosixPath(program).parent, list[FileChange]()
    for name, diff in diffs.files(found.diff):
        path = program if name == _entry(found) else (folder / name).as_posix()
        known = paths.regular(path, repository.entries) is not None
        refused = paths.refusal(path, patched=True)
        before = repository.text(path, paths.MOST_PATCHED) if known and not refused else None
        after = diffs.applied(diff, before) if before is not None else None
        if before is None or after is None:
            return None
        changes.append(FileChange(path=path, text=after, diff=diffs.unified(path, before, after)))
    return RepositoryPatch(program=program, changes=tuple(changes)) if changes else None


def _entry(found: Repair) -> str:
    """The program's file as the diff names it; reports of earlier versions do not tell."""
    if found.entry:
        return found.entry
    return next((name for name, _ in diffs.files(found.diff) if name.endswith(".py")), "")


def _python(repository: RepositoryFiles) -> list[TreeEntry]:
    return [
        entry
        for entry in repository.entries
        if entry.mode in REGULAR
        and entry.path.endswith(".py")
        and not paths.refusal(entry.path, patched=True)
    ]


def _namesakes(found: Repair, repository: RepositoryFiles) -> list[TreeEntry]:
    name = PurePosixPath(_entry(found)).name
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
