"""Jobs in one line: options by their names in a command, wherever the job keeps them."""

from typing import Any

from bot.kernel.bug import Issue
from bot.kernel.job import DiagnoseProgram, IssueOptions, JobOptions, ReproduceIssue
from bot.kernel.training_types import TrainingProgram


def job_options(**flat: Any) -> IssueOptions:
    """The options for an issue."""
    return IssueOptions.model_validate({"options": flat})


def issue_job(issue: Issue, **flat: Any) -> ReproduceIssue:
    """A job for an issue with these options."""
    return ReproduceIssue(issue=issue, **dict(job_options(**flat)))


def program_job(source: str = "", **flat: Any) -> DiagnoseProgram:
    """A job for a program of one file."""
    program = TrainingProgram(files={"a.py": source.encode()}, entry="a.py")
    return DiagnoseProgram(program=program, **dict(program_options(**flat)))


def program_options(**flat: Any) -> JobOptions:
    """The options for a program."""
    options = job_options(**flat)
    return JobOptions(**{name: getattr(options, name) for name in JobOptions.model_fields})
