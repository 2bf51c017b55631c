"""`propose(report, repository, patch)`: a regression test of a reproduced run, a change of
the repository's code, or both.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath

from bot.issues.proposal import layout, layout as proposal_layout, writing
from bot.issues.proposal.layout import PytestSettings
from bot.issues.proposal.writing import Check
from bot.kernel import files, files as kernel_files
from bot.kernel.attempt import Attempt, Match, Script
from bot.kernel.bug import members_of, trains
from bot.kernel.errors import UserError
from bot.kernel.files import RepositoryFiles
from bot.kernel.outside_text import clip, one_line, unshowable
from bot.kernel.redaction import redact
from bot.kernel.report import IssueReport, Reproduced
from bot.kernel.run import (
    REGULAR,
    FileChange,
    Proposal,
    ProposedFile,
    RegressionTest,
    RepositoryPatch,
    TestLayout,
    TreeEntry,
)
from bot.kernel.training_types import Repair

# `regression_test(report, repository)`: the program of a reproduced run as a test in the layout
# of a repository's own tests.

_LONGEST = 200


def regression_test(
    report: IssueReport,
    repository: RepositoryFiles,
    *,
    patched: bool,
    secrets: Collection[str] = (),
) -> RegressionTest:
    """The test; `patched`: a change goes along that may make it pass. `secrets` must not be in it.
    Raises UserError where there can be none, with the reason for people.
    """
    script, attempt = _program(report, secrets)
    check = _check(report, attempt)
    pytest = proposal_layout.read_pytest_settings(_texts(repository, proposal_layout.FILES))
    layout = _layout(report, repository, pytest)
    subject = _subject(report, repository, layout, patched=patched)
    files = writing.files(script, check, layout, subject, pytest)
    ours = _ours(repository.text(files[0].path, kernel_files.MOST_PATCHED) or "")
    for file in files:
        _allowed(file, repository, ours=ours)
    return RegressionTest(
        files=tuple(files),
        command=f"python -m {layout.framework} {files[0].path}",
        framework=layout.framework,
        raises=check.raises,
        strict=subject.strict,
    )


def has_test(report: IssueReport) -> bool:
    """Whether the failure of a report can become a test: a training takes too long for one."""
    is_training = report.signature is not None and trains(report.signature)
    return isinstance(report.verdict, Reproduced) and not is_training


def _program(report: IssueReport, secrets: Collection[str]) -> tuple[Script, Attempt]:
    """The program of a reproduced report, the smallest that is confirmed, and a run that failed."""
    if not isinstance(report.verdict, Reproduced) or report.script is None:
        raise UserError(
            "Only a reproduced failure can become a test.", "Reproduce the issue first."
        )
    script = report.script
    if not has_test(report):
        raise UserError(
            "A training takes too long for a test.", "Use `/reproduce repair` to find a patch."
        )
    if script.fault_code is not None:
        raise UserError(
            "A test of the script would test its copy of the repository's code.",
            "Write the test by hand.",
        )
    # A test keeps neither the kind of line ends nor blank lines at the end.
    files = {name: text.replace("\r\n", "\n").strip("\n") for name, text in script.files.items()}
    if parts := unshowable(files, secrets):
        raise UserError(
            f"A test made of the program could not be reviewed: {'; '.join(map(str, parts))}.",
            "Remove this from the issue and reproduce it again, or write the test by hand.",
        )
    failed = [attempt for attempt in report.attempts if attempt.judgement.match is Match.MATCHED]
    own = [attempt for attempt in failed if attempt.script == script.digest]
    if not failed:
        raise UserError("No run of this report failed.", "Reproduce the issue again.")
    return script, (own or failed)[-1]


def _check(report: IssueReport, attempt: Attempt) -> Check:
    members = members_of(report.signature) if report.signature is not None else ()
    at = attempt.judgement.member
    check = writing.of(members[at], attempt) if at < len(members) else None
    if check is None:
        raise UserError(
            "This failure cannot be a test that ends: it kills, stops or exhausts its process, or "
            "shows only outside of Python.",
            "The script in the comment shows it.",
        )
    return replace(check, says=clip(redact(one_line(check.says)), _LONGEST))


def _texts(repository: RepositoryFiles, names: Sequence[str]) -> dict[str, str]:
    texts = ((name, repository.text(name)) for name in names)
    return {name: text for name, text in texts if text is not None}


def _layout(report: IssueReport, repository: RepositoryFiles, pytest: PytestSettings) -> TestLayout:
    entries = repository.entries
    folder = layout.folder(entries, pytest, _modules(report))
    if folder is None:
        raise UserError(
            "This repository has no folder for tests.",
            "Add a folder named tests.",
        )
    samples = (repository.text(entry.path) for entry in layout.neighbours(folder, entries, pytest))
    return layout.layout(folder, entries, pytest, [text for text in samples if text])


def _modules(report: IssueReport) -> list[str]:
    """The modules in which the failure arose, the innermost first."""
    failures = (attempt.judgement.failure for attempt in report.attempts)
    frames = next((failure.frames for failure in failures if failure is not None), ())
    return [PurePosixPath(frame.module_path).stem for frame in reversed(frames) if frame.package]


def _subject(
    report: IssueReport, repository: RepositoryFiles, layout: TestLayout, *, patched: bool
) -> writing.TestedIssue:
    verdict, number = report.verdict, report.issue.number
    assert isinstance(verdict, Reproduced)
    assert report.script is not None
    slug = f"issue_{number}" if number is not None else "reported_failure"
    name = layout.name.format(slug)
    same = [entry for entry in repository.entries if PurePosixPath(entry.path).name == name]
    # Equal names in two folders hide one another.
    is_occupied = not all(_ours(repository.text(entry.path) or "") for entry in same)
    return writing.TestedIssue(
        slug=f"{slug}_reprise" if is_occupied else slug,
        reason=f"#{number}" if number is not None else "the reported failure",
        strict=verdict.determinism == "deterministic" and not patched,
        author="a model's program"
        if report.script.author == "model"
        else "the bug report's program",
    )


def _ours(text: str) -> bool:
    """Whether an earlier proposal wrote this test."""
    return text.startswith(writing.HEAD) and writing.BY in text.partition("\n")[0]


def _allowed(file: ProposedFile, repository: RepositoryFiles, *, ours: bool) -> None:
    """Raises UserError for a file that may not be written; one that is ours is replaced."""
    reason = kernel_files.refusal(file.path.removesuffix(writing.SUFFIX), is_patched=False)
    others = repository.entries
    if ours:
        others = [entry for entry in others if entry.path != file.path or entry.mode not in REGULAR]
    if not reason and (blocker := kernel_files.in_the_way(file.path, others)):
        reason = f"cannot be added: {blocker}"
    if not reason and len(file.text) > kernel_files.MOST_TEST:
        reason = "would be too long to review"
    if reason:
        raise UserError(f"The test {file.path} {reason}.", "Add the script by hand.")


# `of_repair(found, repository)`: a proven repair of a program as a change of the repository's own
# files, where the program is one of them.

_MOST_READ = 20


def of_repair(result: Repair, repository: RepositoryFiles) -> RepositoryPatch:
    """The change of the file that is the program, and of the files beside it: the program has the
    same text, or the same name, and every file the lines that the diff meets. Raises
    UserError where there is none, with the reason for people.
    """
    if not result.proven:
        raise UserError("The patch of the repair is not proven to help, so it is not proposed.")
    same = [entry for entry in _python(repository) if _is(entry, result, repository)]
    programs = same or _namesakes(result, repository)
    candidates = [_patch(result, entry.path, repository) for entry in programs[:_MOST_READ]]
    patches = [patch for patch in candidates if patch is not None]
    if not patches:
        raise UserError(
            "The program in this issue is not a file of this repository, so there is nothing to "
            "change here."
        )
    if len(patches) > 1:
        names = " and ".join(patch.program for patch in islice(patches, 2))
        raise UserError(f"Several files of this repository match the program: {names}.")
    return patches[0]


def _patch(result: Repair, program: str, repository: RepositoryFiles) -> RepositoryPatch | None:
    """The repair as a change of one program and what is beside it, None where it does not fit."""
    entry, changes = _entry(result), list[FileChange]()
    for name, diff in files.files(result.diff):
        path = program if name == entry else _beside(program, entry, name)
        is_regular = files.regular(path, repository.entries) is not None
        refusal = files.refusal(path, is_patched=True)
        before = repository.text(path, files.MOST_PATCHED) if is_regular and not refusal else None
        after = files.apply_diff(diff, before) if before is not None else None
        if before is None or after is None:
            return None
        changes.append(FileChange(path=path, text=after, diff=files.unified(path, before, after)))
    return RepositoryPatch(program=program, changes=tuple(changes)) if changes else None


def _beside(program: str, entry: str, name: str) -> str:
    """Where a file is in the repository that lies beside the program's entry; "" for one that lies
    elsewhere.
    """
    folder = PurePosixPath(entry).parent
    if not PurePosixPath(name).is_relative_to(folder):
        return ""
    own = PurePosixPath(name).relative_to(folder)
    return (PurePosixPath(program).parent / own).as_posix()


def _entry(result: Repair) -> str:
    """The program's file as the diff names it; reports of earlier versions do not tell."""
    if result.entry:
        return result.entry
    return next((name for name, _ in files.files(result.diff) if name.endswith(".py")), "")


def _python(repository: RepositoryFiles) -> list[TreeEntry]:
    return [
        entry
        for entry in repository.entries
        if entry.mode in REGULAR
        and entry.path.endswith(".py")
        and not files.refusal(entry.path, is_patched=True)
    ]


def _namesakes(result: Repair, repository: RepositoryFiles) -> list[TreeEntry]:
    """Files with the program's name, where the diff is of the program and can tell that it is."""
    if _entry(result) not in {name for name, _ in files.files(result.diff)}:
        return []
    name = PurePosixPath(_entry(result)).name
    return [entry for entry in _python(repository) if PurePosixPath(entry.path).name == name]


def _is(entry: TreeEntry, result: Repair, repository: RepositoryFiles) -> bool:
    """Whether a file is the program, but for the line ends at its end, which a quote may lose. By
    git's id of it where that is known: nothing is read.
    """
    if not result.source:
        return bool(result.source_sha) and _sha(entry, repository) == result.source_sha
    bare = result.source.rstrip("\n")
    if not bare or not 0 <= entry.size - len(bare.encode()) <= 1:
        return False
    raw = bare + "\n" * (entry.size - len(bare.encode()))
    return _sha(entry, repository) == files.blob(raw)


def _sha(entry: TreeEntry, repository: RepositoryFiles) -> str:
    if entry.sha:
        return entry.sha
    text = repository.text(entry.path, files.MOST_PATCHED)
    return files.blob(text) if text is not None else ""


# `propose(report, repository, patch)`: a regression test of a reproduced run, a change of the
# repository's own code, or both.


def propose(
    report: IssueReport,
    repository: RepositoryFiles,
    patch: RepositoryPatch | None = None,
    secrets: Collection[str] = (),
) -> Proposal:
    """What to propose; `secrets` must not be in it. Raises UserError where nothing can be, with the
    reason for people.
    """
    test, left_out = _test(report, repository, patch, secrets)
    changes = patch.changes if patch is not None else ()
    file_changes = [_file_change(change, repository, secrets) for change in changes]
    if (
        sum(kernel_files.changed_lines(change.diff) for change in changes)
        > kernel_files.MOST_CHANGED
    ):
        raise UserError("The change is too long to review.", "Apply the diff by hand.")
    files = (*(test.files if test is not None else ()), *file_changes)
    if len(files) > kernel_files.MOST_FILES:
        raise UserError("The change touches too many files for one pull request.")
    return Proposal(
        files=files,
        diff="".join(_diffs(files, repository)),
        test=test,
        patch=patch,
        left_out=left_out,
    )


def _test(
    report: IssueReport,
    repository: RepositoryFiles,
    patch: RepositoryPatch | None,
    secrets: Collection[str],
) -> tuple[RegressionTest | None, str]:
    """The test, or why a patch goes without one."""
    if patch is not None and not has_test(report):
        return None, ""
    try:
        is_patched = patch is not None
        return regression_test(report, repository, patched=is_patched, secrets=secrets), ""
    except UserError as error:
        if patch is None:
            raise
        return None, str(error)


def _file_change(
    change: FileChange, repository: RepositoryFiles, secrets: Collection[str]
) -> ProposedFile:
    """The patched file. Raises UserError where it may not be changed, where the diff does not lead
    from the repository's text to the new one, or where a line that it adds cannot be reviewed.
    """
    entry = kernel_files.regular(change.path, repository.entries)
    before = repository.text(change.path, kernel_files.MOST_PATCHED)
    reason = kernel_files.refusal(change.path, is_patched=True)
    if not reason and (entry is None or before is None):
        reason = "is not a text file in this commit"
    if not reason and len(change.text) > kernel_files.MOST_PATCHED:
        reason = "would be too long"
    reason = reason or kernel_files.misfit(change.diff, change.path, before or "", change.text)
    added_lines = frozenset() if reason else kernel_files.added_lines(change.diff)
    if any(
        added_lines & set(part.lines) for part in unshowable({change.path: change.text}, secrets)
    ):
        reason = "adds a line that could not be reviewed"
    if reason or entry is None:
        raise UserError(f"The change of {change.path} {reason}.", "Apply the diff by hand.")
    mode = "100755" if entry.mode == "100755" else "100644"
    return ProposedFile(path=change.path, text=change.text, mode=mode)


def _diffs(files: Sequence[ProposedFile], repository: RepositoryFiles) -> list[str]:
    before = (repository.text(file.path, kernel_files.MOST_PATCHED) for file in files)
    return [
        kernel_files.unified(file.path, text, file.text)
        for file, text in zip(files, before, strict=True)
    ]
