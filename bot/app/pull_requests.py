"""The pull request of an issue: opened as a draft from a reproduced run, a proven repair or both,
updated when it is asked for again, closed with its issue. Idempotent: killed anywhere, it ends in
one pull request.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.app import context as app_context, publish
from bot.app.context import AppContext
from bot.app.ports import (
    PULL_REQUEST,
    GoneError,
    NotGranted,
    OurComment,
    PullRequest,
    RepositoryState,
    RepositoryWriter,
    Settled,
    Target,
)
from bot.issues.proposal.propose import has_test, of_repair, propose
from bot.kernel.errors import UserError
from bot.kernel.files import RepositoryFiles
from bot.kernel.report import IssueReport
from bot.kernel.run import NewRun, Proposal, Repository, RepositoryPatch, Run
from bot.report import pull_request, replies

_log = logging.getLogger(__name__)
_GRANT = (
    "The App's owner sets Contents and Pull requests to read and write in the App's permissions; "
    "then an administrator accepts that for the installation."
)


def branch(number: int) -> str:
    """The branch of an issue's pull request; nothing from outside is in its name."""
    return f"reprise/issue-{number:d}"


def answer(context: AppContext, runs: Sequence[Run]) -> Settled:
    """Open or update the pull request of an issue from runs of it, newest first; what to tell
    whoever asked.
    """
    try:
        left_out = open_pull_request(context, runs)
    except NotGranted as error:
        _log.info("run %s: no pull request: %s", runs[0].id, error)
        reason = f"Reprise may not open pull requests in this repository. {_GRANT}"
        return Settled(text=replies.refusal(reason), reaction="confused")
    except UserError as error:
        return Settled(text=replies.refusal(f"{error} {error.fix}"), reaction="confused")
    publish.refresh(context, runs[0].request)
    return Settled(
        text=replies.refusal(left_out, replies.INCOMPLETE) if left_out else "", reaction="+1"
    )


def automatic(context: AppContext, run: Run) -> None:
    """Open the pull request of a run that was reproduced or repaired where the configuration asks
    for it, if someone with write permission asked for the run or approved it: the test will run
    where the repository's CI runs.
    """
    where, by = publish.target(run.request), run.approved_by or run.request.requester
    report = context.store.report(run.id)
    if not isinstance(report, IssueReport):
        return
    proven = report.repair is not None and report.repair.proven
    if (
        not (proven or report.verdict.kind == "reproduced")
        or context.config(where).pull_request == "off"
    ):
        return
    if not app_context.writes(context, where, by):
        return
    try:
        open_pull_request(context, (run,), again=False)
    except UserError as error:
        _log.warning("run %s: no pull request: %s %s", run.id, error, error.fix)
    else:
        publish.refresh(context, run.request)


def close(context: AppContext, repository: Repository, installation: int, number: int) -> None:
    """Close the open pull request of a closed issue, if we opened one."""
    where = Target(installation=installation, repository=repository.full_name)
    if context.store.comment(where.repository, number, PULL_REQUEST) is None:
        return
    try:
        with context.github.writable(where) as writer:
            for pull in writer.pulls(branch(number)):
                if pull.state == "open":
                    writer.close_pull(pull.number)
    except (UserError, GoneError) as error:
        _log.warning("%s#%d: its pull request stays open: %s", where.repository, number, error)


def open_pull_request(context: AppContext, runs: Sequence[Run], *, again: bool = True) -> str:
    """Open the pull request, or bring it up to date; what was left out of it, and why. Unless
    `again`, one that we know of, and one that somebody has closed, is left alone. Raises UserError
    where there can be none.
    """
    runs_and_reports = ((run, context.store.report(run.id)) for run in runs)
    reports_by_run = {
        run.id: report for run, report in runs_and_reports if isinstance(report, IssueReport)
    }
    if not reports_by_run:
        raise UserError("The run's report is no longer stored.", "Comment `/reproduce` first.")
    with context.github.writable(publish.target(runs[0].request)) as writer:
        work = _Work(
            context, [run for run in runs if run.id in reports_by_run], reports_by_run, writer
        )
        return work.proceed() if again or work.wanting else ""


@dataclass(frozen=True)
class _Work:
    context: AppContext
    runs: Sequence[Run]
    reports: Mapping[str, IssueReport]
    writer: RepositoryWriter

    @property
    def report(self) -> IssueReport:
        return publish.merge_reports([self.reports[run.id] for run in self.runs])

    @property
    def request(self) -> NewRun:
        return self.runs[0].request

    @property
    def branch(self) -> str:
        return branch(self.request.number)

    @property
    def wanting(self) -> bool:
        """Whether there was no pull request, or one whose number was lost with a killed worker."""
        where, number = self.request.repository.full_name, self.request.number
        comment = self.context.store.comment(where, number, PULL_REQUEST)
        return comment is None and all(
            pull.state == "open" for pull in self.writer.pulls(self.branch)
        )

    def proceed(self) -> str:
        state = publish.admitted(self.writer, self.request.number)
        pull = self._current()
        proposal = self._proposal(state)
        self._pushed(state, proposal)
        number = self._shown(state, proposal, pull)
        self._noted(number, proposal)
        return proposal.left_out

    def _noted(self, pull: int, proposal: Proposal) -> None:
        """Store its number, and whose patch it has."""
        report_with_repair = publish.repaired([self.reports[run.id] for run in self.runs])
        repaired = (run.id for run in self.runs if self.reports[run.id] is report_with_repair)
        comment = OurComment(
            repository=self.request.repository.full_name,
            number=self.request.number,
            key=PULL_REQUEST,
            comment=pull,
            digest=next(repaired, "") if proposal.patch is not None else "",
        )
        self.context.store.put_comment(comment)

    def _current(self) -> PullRequest | None:
        """The open pull request. Raises UserError when an earlier one was merged."""
        pulls = self.writer.pulls(self.branch)
        current = next((pull for pull in pulls if pull.state == "open"), None)
        if current is None and any(pull.state == "merged" for pull in pulls):
            raise UserError("The pull request of this issue has been merged.")
        return current

    def _proposal(self, state: RepositoryState) -> Proposal:
        files = publish.files_of(self.writer, state)
        patch, why = self._patch(files)
        proposal = propose(self.report, files, patch, self.context.policy.secrets)
        return proposal.model_copy(update={"left_out": why}) if why else proposal

    def _patch(self, files: RepositoryFiles) -> tuple[RepositoryPatch | None, str]:
        """The proven patch, or why a test goes without it. Raises UserError where there is neither
        patch nor test.
        """
        repair = self.report.repair
        if repair is None or not repair.patch:
            return None, ""
        try:
            return of_repair(repair, files), ""
        except UserError as error:
            if not has_test(self.report):
                raise
            return None, str(error)

    def _pushed(self, state: RepositoryState, proposal: Proposal) -> None:
        """Bring the branch up to date, on top of what we wrote there. Raises UserError when others
        have written there too.
        """
        before = self.writer.branch(self.branch)
        if before and self.writer.others(state.head, before):
            raise UserError(
                f"Others have committed to the branch `{self.branch}`, so Reprise leaves it alone.",
                "Delete the branch to let Reprise recreate it.",
            )
        message = pull_request.message(self.report, proposal)
        commit = self.writer.commit(state.head, proposal.files, before, message)
        if commit != before:
            self.writer.point(self.branch, commit, new=not before)

    def _shown(self, state: RepositoryState, proposal: Proposal, pull: PullRequest | None) -> int:
        title = pull_request.title(self.request.number, proposal)
        pages = [page for run in self.runs if (page := self.context.page(run))]
        secrets: Sequence[str] = self.context.policy.secrets
        body = pull_request.body(self.report, proposal, pages=pages, secrets=secrets)
        if pull is None:
            return self.writer.open_pull(self.branch, state.default_branch, title, body)
        self.writer.edit_pull(pull.number, title, body)
        return pull.number
