"""`propose(report, repository, patch)`: a regression test of a reproduced run, a change of the
repository's own code, or both.
"""

from collections.abc import Sequence

from bot.errors import UserError
from bot.models.pull_request import Proposal, ProposedFile, RegressionTest, RepositoryPatch
from bot.models.report import Report
from bot.pipeline.proposal.files import RepositoryFiles
from bot.pipeline.proposal.testing import regression_test
from bot.rules.regression import diffs, paths


def propose(
    report: Report, repository: RepositoryFiles, patch: RepositoryPatch | None = None
) -> Proposal:
    """What to propose. Raises UserError where nothing can be, with the reason for people."""
    test, left_out = _test(report, repository, patch)
    changed = (_changed(patch, repository),) if patch is not None else ()
    files = (*(test.files if test is not None else ()), *changed)
    return Proposal(
        files=files,
        diff="".join(_diffs(files, repository)),
        test=test,
        patch=patch,
        left_out=left_out,
    )


def _test(
    report: Report, repository: RepositoryFiles, patch: RepositoryPatch | None
) -> tuple[RegressionTest | None, str]:
    """The test, or why a patch goes without one."""
    if patch is not None and report.verdict.kind != "reproduced":
        return None, ""
    try:
        return regression_test(report, repository, patched=patch is not None), ""
    except UserError as error:
        if patch is None:
            raise
        return None, str(error)


def _changed(patch: RepositoryPatch, repository: RepositoryFiles) -> ProposedFile:
    """The patched file. Raises UserError where it may not be changed, or where the diff does not
    lead from the repository's text to the new one.
    """
    entry = paths.regular(patch.path, repository.entries)
    before = repository.text(patch.path, paths.MOST_PATCHED)
    reason = paths.refusal(patch.path, patched=True)
    if not reason and (entry is None or before is None):
        reason = "is no text file of this commit"
    if not reason and len(patch.text) > paths.MOST_PATCHED:
        reason = "would be too long"
    reason = reason or diffs.misfit(patch.diff, patch.path, before or "", patch.text)
    if not reason and diffs.changed_lines(patch.diff) > paths.MOST_CHANGED:
        reason = "would change too much to review"
    if reason or entry is None:
        raise UserError(f"The change of {patch.path} {reason}.", "Apply the diff by hand.")
    mode = "100755" if entry.mode == "100755" else "100644"
    return ProposedFile(path=patch.path, text=patch.text, mode=mode)


def _diffs(files: Sequence[ProposedFile], repository: RepositoryFiles) -> list[str]:
    before = (repository.text(file.path, paths.MOST_PATCHED) for file in files)
    return [
        diffs.unified(file.path, text, file.text) for file, text in zip(files, before, strict=True)
    ]
