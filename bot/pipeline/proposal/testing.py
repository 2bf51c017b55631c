"""`regression_test(report, repository)`: the program of a reproduced run as a test in the layout
of a repository's own tests.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from bot.errors import UserError
from bot.models.attempt import Attempt, Match, Script
from bot.models.pull_request import REGULAR, ProposedFile, RegressionTest, TestLayout
from bot.models.report import Report, Reproduced
from bot.models.signature import members_of
from bot.pipeline.proposal.files import RepositoryFiles
from bot.rules.regression import checks, layout as layouts, paths, settings, writing
from bot.rules.regression.checks import Check
from bot.rules.regression.settings import PytestSettings
from bot.text.sanitize import clip, one_line, redact
from bot.text.verbatim import unshowable

_LONGEST = 200


def regression_test(
    report: Report,
    repository: RepositoryFiles,
    *,
    patched: bool,
    secrets: Collection[str] = (),
) -> RegressionTest:
    """The test; `patched`: a change goes along that may make it pass. `secrets` must not be in it.
    Raises UserError where there can be none, with the reason for people.
    """
    script, shown = _program(report, secrets)
    check = _check(report, shown)
    pytest = settings.read(_texts(repository, settings.FILES))
    layout = _layout(report, repository, pytest)
    subject = _subject(report, repository, layout, patched=patched)
    files = writing.files(script, check, layout, subject, pytest)
    ours = _ours(repository.text(files[0].path, paths.MOST_PATCHED) or "")
    for file in files:
        _allowed(file, repository, ours=ours)
    return RegressionTest(
        files=tuple(files),
        command=f"python -m {layout.framework} {files[0].path}",
        framework=layout.framework,
        raises=check.raises,
        strict=subject.strict,
    )


def _program(report: Report, secrets: Collection[str]) -> tuple[Script, Attempt]:
    """The program of a reproduced report, the smallest that is confirmed, and a run that failed."""
    if not isinstance(report.verdict, Reproduced) or report.script is None:
        raise UserError(
            "Only a reproduced failure can become a test.", "Reproduce the issue first."
        )
    script = report.script
    # A test keeps neither the kind of line ends nor blank lines at the end.
    files = {each: text.replace("\r\n", "\n").strip("\n") for each, text in script.files.items()}
    if parts := unshowable(files, secrets):
        raise UserError(
            f"A test made of the program could not be reviewed: {'; '.join(map(str, parts))}.",
            "Remove this from the issue and reproduce it again, or write the test by hand.",
        )
    failed = [each for each in report.attempts if each.judgement.match is Match.MATCHED]
    own = [each for each in failed if each.script == script.digest]
    if not failed:
        raise UserError("No run of this report failed.", "Reproduce the issue again.")
    return script, (own or failed)[-1]


def _check(report: Report, shown: Attempt) -> Check:
    members = members_of(report.signature) if report.signature is not None else ()
    at = shown.judgement.member
    check = checks.of(members[at], shown) if at < len(members) else None
    if check is None:
        raise UserError(
            "This failure cannot be a test that ends: it kills, stops or exhausts its process, or "
            "shows only outside of Python.",
            "The script in the comment shows it.",
        )
    return replace(check, says=clip(redact(one_line(check.says)), _LONGEST))


def _texts(repository: RepositoryFiles, names: Sequence[str]) -> dict[str, str]:
    found = ((name, repository.text(name)) for name in names)
    return {name: text for name, text in found if text is not None}


def _layout(report: Report, repository: RepositoryFiles, pytest: PytestSettings) -> TestLayout:
    entries = repository.entries
    folder = layouts.folder(entries, pytest, _modules(report))
    if folder is None:
        raise UserError(
            "This repository has no folder for tests.",
            "Add a folder named tests.",
        )
    samples = (repository.text(entry.path) for entry in layouts.neighbours(folder, entries, pytest))
    return layouts.layout(folder, entries, pytest, [text for text in samples if text])


def _modules(report: Report) -> list[str]:
    """The modules in which the failure arose, the innermost first."""
    failures = (each.judgement.failure for each in report.attempts)
    frames = next((failure.frames for failure in failures if failure is not None), ())
    return [PurePosixPath(frame.module_path).stem for frame in reversed(frames) if frame.package]


def _subject(
    report: Report, repository: RepositoryFiles, layout: TestLayout, *, patched: bool
) -> writing.TestedIssue:
    verdict, number = report.verdict, report.issue.number
    assert isinstance(verdict, Reproduced)
    assert report.script is not None
    slug = f"issue_{number}" if number is not None else "reported_failure"
    name = layout.name.format(slug)
    same = [each for each in repository.entries if PurePosixPath(each.path).name == name]
    # Equal names in two folders hide one another.
    taken = not all(_ours(repository.text(entry.path) or "") for entry in same)
    return writing.TestedIssue(
        slug=f"{slug}_reprise" if taken else slug,
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
    reason = paths.refusal(file.path.removesuffix(writing.SUFFIX), patched=False)
    others = repository.entries
    if ours:
        others = [entry for entry in others if entry.path != file.path or entry.mode not in REGULAR]
    if not reason and (blocker := paths.in_the_way(file.path, others)):
        reason = f"cannot be added: {blocker}"
    if not reason and len(file.text) > paths.MOST_TEST:
        reason = "would be too long to review"
    if reason:
        raise UserError(f"The test {file.path} {reason}.", "Add the script by hand.")
