"""A bug report reads the same in every form in which people write it."""

import ast
import sys
from typing import Any

from bot.issues.reading.issue import read_issue
from bot.issues.signature import values
from bot.issues.signature.freeze import freeze
from bot.kernel.bug import (
    CrashSignature,
    FenceKind,
    Issue,
    Member,
    OutputSignature,
    Role,
    members_of,
)
from bot.kernel.source.syntax import pasted_tree
from tests.corpus.rewrites.rewrites import forms, issue, reports


def failure(member: Member) -> object:
    """What identifies a failure, apart from how it is shown."""
    if isinstance(member, CrashSignature):
        name = member.exception.rsplit(".", 1)[-1]
        return name, " ".join(member.message.split()), member.shapes, member.frame, member.checks
    if isinstance(member, OutputSignature):
        return values.clean_chunks(member.observed), values.clean_chunks(member.expected)
    return member


def seen(report: Issue) -> dict[str, Any]:
    """What is read from a report: the failure, the program, the versions."""
    bug = read_issue(report)
    signature = freeze(bug)
    programs = [
        fence
        for fence in bug.fences
        if fence.kind is FenceKind.PROGRAM and fence.role in {Role.REPRODUCER, Role.UNSTATED}
    ]
    trees = [pasted_tree(fence.text) for fence in programs]
    return {
        "failure": set(map(failure, members_of(signature))) if signature else None,
        "program": [ast.dump(tree) if tree else None for tree in trees],
        "versions": {claim.name: claim.version for claim in bug.versions},
    }


def test_a_report_reads_the_same_in_every_form(capsys):
    read_alike = {}
    for report in reports():
        plain = seen(issue(report))
        assert plain["failure"]
        assert plain["program"]
        assert plain["versions"].keys() >= report.versions.keys()
        for form in forms(report):
            read_alike[report.name, form] = seen(issue(report, form)) == plain
    other = [name for name, alike in read_alike.items() if not alike]
    with capsys.disabled():
        same = len(read_alike) - len(other)
        sys.stdout.write(f"\nrewritten reports: {same} of {len(read_alike)} read the same\n")
    assert len(other) <= 0.02 * len(read_alike), other
