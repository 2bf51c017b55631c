"""Takes the pictures of README.md and docs/: runs the example, posts the verdict on an issue of the
stand-in GitHub, and photographs the pages in a browser.

`python tests/integration/pages/pictures.py` writes docs/images/run.svg, page.png, comment.png,
setup.png and runs.png. `… pictures.py runs` writes only the last one: the list of a repository's
runs, whose reports are those of the tests.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from sandbox.select import choose
from tests.support.jobs import issue_job

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from rich._export_format import CONSOLE_SVG_FORMAT  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.text import Text  # noqa: E402

from bot.app import bootstrap  # noqa: E402
from bot.app.execute_run import StoreJournal  # noqa: E402
from bot.cli.sources import example  # noqa: E402
from bot.issues.verdicts import KINDS  # noqa: E402
from bot.kernel.report import IssueReport  # noqa: E402
from bot.kernel.run import NewRun, Repository, Run  # noqa: E402
from bot.kernel.settings import load  # noqa: E402
from bot.products import engine  # noqa: E402
from bot.report import comment  # noqa: E402
from bot.report.terminal import terminal  # noqa: E402
from handlers.app import create  # noqa: E402
from handlers.setup import Setup  # noqa: E402
from tests.golden.stages import REPORTS  # noqa: E402
from tests.integration.pages.chromium import browser  # noqa: E402
from tests.integration.pages.site import SETTINGS, new, served  # noqa: E402
from tests.support.fakes import FrozenClock, InlineQueue, MemoryStore  # noqa: E402
from tests.support.stand_in import GitHubServer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
_TIMES = 4
_LISTED = (
    ("reproduced", "MultiHeadPool fails on a batch of one"),
    ("not_reproduced", "Loss is NaN after the first step with half precision"),
    ("reproduced-with-proof", "bias is not passed to lin_key"),
    ("needs_info", "Training stops after some hours"),
    ("reproduced-with-control", "top_k returns indices of the wrong type"),
    ("inconclusive", "Scores differ between two machines"),
    ("needs_hardware", "Illegal memory access in the fused kernel"),
    ("reproduced-half-proven", "state_dict does not load into a compiled model"),
)
SETUP = SETTINGS.model_copy(
    update={
        "public_url": "https://reprise.example.com",
        "app_file": Path("/var/lib/reprise/reprise-app.env"),
    }
)


def worked(store: MemoryStore) -> tuple[Run, IssueReport]:
    """The example, run for real, and kept."""
    issue = example()
    issue = issue.model_copy(update={"number": 237, "author": "reporter"})
    asked = NewRun(
        delivery="picture",
        installation=1,
        repository=Repository(id=1, full_name=issue.repository),
        number=237,
        requester="maintainer",
        trigger="comment",
        job=issue_job(issue),
    )
    run, _ = store.add_run(asked)
    store.take_run(run.id, "me", 3_600)
    settings = load()
    world = bootstrap.make_ports(
        settings,
        sandbox=choose(asked.job.environment.sandbox),
        journal=StoreJournal(store, run.id, "me"),
        listener=lambda _: None,
    )
    report = engine.execute(asked.job, world)
    store.put_report(run.id, "me", report)
    store.finish_run(run.id, "me")
    return run, report


def drawn(report: IssueReport, wide: int = 104) -> str:
    """The terminal view as SVG, without a font from elsewhere."""
    shown = terminal(report, run="reprise-runs/dgasmith-opt-einsum-237", width=wide, colour=True)
    console = Console(record=True, width=wide, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("$ reprise example\n\n" + shown))
    plain = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    plain = plain.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas")
    return console.export_svg(title="reprise", code_format=plain, unique_id="terminal")


def told(github: GitHubServer, run: Run, report: IssueReport) -> str:
    """The verdict on an issue page; its address."""
    state, issue = github.state, report.issue
    state.installation(run.request.repository.full_name.partition("/")[0], [issue.repository])
    label = KINDS[report.verdict.kind].label
    assert label is not None
    state.label(issue.repository, label.name, label.colour)
    state.issue(
        issue.repository,
        issue.title,
        issue.body.partition("### To reproduce")[0],
        "reporter",
        number=237,
        labels=[label.name],
        created_at=issue.created_at,
    )
    state.comment(issue.repository, 237, "maintainer", "/reproduce")
    body = comment.final(report, page=f"https://reprise.example.com/runs/{run.id}")
    state.comment(issue.repository, 237, "reprise[bot]", body, app=True)
    return f"{github.url}/{issue.repository}/issues/237"


def listed(store: MemoryStore, clock: FrozenClock) -> str:
    """Four months of runs of one repository; the id of the last."""
    repository, run = Repository(id=1, full_name="acme/pool"), ""
    for number, (name, title) in enumerate(_LISTED * _TIMES, 1):
        report = REPORTS[name]
        update = {"repository": repository.full_name, "title": title}
        issue = report.issue.model_copy(update=update)
        kept = report.model_copy(update={"issue": issue})
        asked = new(f"list-{number}", kept, 40 + number, repository=repository)
        run = store.add_run(asked)[0].id
        store.take_run(run, "me", 3_600)
        store.beat(run, "me", 3_600, seconds=20.0 + 37 * (number % 7))
        store.put_report(run, "me", kept)
        store.finish_run(run, "me")
        clock.advance(86_400 * (2 + number % 3))
    return run


def list_picture() -> None:
    """The list of a repository's runs."""
    clock = FrozenClock(time.time() - 86_400 * 3 * len(_LISTED) * _TIMES)
    store = MemoryStore(clock=clock)
    run = listed(store, clock)
    with (
        tempfile.TemporaryDirectory() as folder,
        browser(Path(folder) / "profile") as tab,
        served(create(SETTINGS, store, InlineQueue())) as url,
    ):
        tab.look(940, 900)
        tab.open(f"{url}/runs/{run}/repository")
        tab.shot(IMAGES / "runs.png")


def main() -> None:
    """The pictures of the example and of the setup page."""
    store = MemoryStore()
    run, report = worked(store)
    (IMAGES / "run.svg").write_text(drawn(report), encoding="utf-8")
    print(f"{datetime.now(UTC):%H:%M:%S} {report.verdict.kind} after {len(report.attempts)} runs")  # noqa: T201
    with (
        tempfile.TemporaryDirectory() as folder,
        browser(Path(folder) / "profile") as tab,
        GitHubServer() as github,
    ):
        with served(create(SETTINGS, store, InlineQueue())) as url:
            tab.look(940, 1780)
            tab.open(f"{url}/runs/{run.id}")
            tab.shot(IMAGES / "page.png")
        setup = Setup(SETUP, lambda _kept: None)
        with served(setup.app) as url:
            tab.look(960, 1020)
            tab.open(f"{url}/setup?key={setup.key}")
            tab.shot(IMAGES / "setup.png")
        tab.look(940, 1230)
        tab.open(told(github, run, report))
        tab.shot(IMAGES / "comment.png")


if __name__ == "__main__":
    if sys.argv[1:] != ["runs"]:
        main()
    list_picture()
