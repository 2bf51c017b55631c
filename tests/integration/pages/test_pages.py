"""The pages of the App over HTTP: what they show, what they never tell, and what hostile text
becomes on them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.app import context
from bot.app.ports import CREDENTIALS_ALARM, AppStore
from bot.issues.phrases import pair_attempts
from bot.kernel.errors import TransientError
from bot.kernel.run import Repository
from bot.report.html import REFRESH_S, run_page, view
from bot.report.svg import ceiling
from handlers.app import create
from tests.corpus.hostile.corpus import Hostile, load
from tests.golden.stages import REPORTS, run
from tests.integration.pages.reading import words, wrong
from tests.integration.pages.site import LOG, SECRET, SETTINGS, WEAK, Site, new, served, worked
from tests.support.fakes import InlineQueue, MemoryStore
from tests.support.jobs import job_options
from tests.unit.test_hostile_outgoing import poisoned

REPRODUCED = sum(report.verdict.kind == "reproduced" for report in REPORTS.values())
RUNS = [*REPORTS, "live", "queued", "waiting", "broken"]
LIVE = ("live", "queued", "waiting")
TEXTS = [each for each in load("outgoing") if not each.fill]
NOW = datetime(2024, 5, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_whole_inert_and_told_to_nobody(pages: Site, name: str) -> None:
    answer = pages.get(f"/runs/{pages.runs[name]}")
    assert (answer.status, wrong(answer.text)) == (200, [])
    headers = answer.headers
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Robots-Tag"].startswith("noindex")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"].startswith(
        "default-src 'none'; style-src 'self'; img-src 'self'"
    )
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert SECRET not in answer.text
    assert (f'http-equiv="refresh" content="{REFRESH_S}"' in answer.text) == (name in LIVE)


@pytest.mark.parametrize("name", REPORTS)
def test_a_verdict_is_shown_with_what_carries_it(pages: Site, name: str) -> None:
    text, report = words(pages.get(f"/runs/{pages.runs[name]}").text), REPORTS[name]
    assert report.issue.title in text
    assert "Requested by octocat" in text
    assert "with torch=2.1.0, python=3.11" in text
    assert (f"Runs of the program: {len(report.attempts)}" in text) == bool(report.attempts)
    if report.environment is not None:
        assert all(
            f"{each.name}" in text and each.version in text for each in report.environment.packages
        )
    if report.command:
        assert report.command in text


def test_numbers_stand_beside_the_verdict(pages: Site) -> None:
    text = words(pages.get(f"/runs/{pages.runs['reproduced-with-control']}").text)
    for said in (
        "5 of 5 runs",
        "95 % confidence interval 48\u2013100 %",
        "deterministic",
        "control (fixed-version) 0 of 5 failed, p = 0.004",
    ):
        assert said in text


def test_a_proof_is_shown_in_words_and_pictures(pages: Site) -> None:
    page = pages.get(f"/runs/{pages.runs['reproduced-with-proof']}").text
    text = words(page)
    for said in (
        "Bug confirmed: 5 of 5 runs failed with pool 0.3.1, but 0 of 5 failed with pool 0.3.3 (p = 0.004).",
        "pool: introduced in 0.2.4 (2023-12-09), fixed between 0.3.1 (2024-04-22) and 0.3.3.",
        "0.3.2 could not be tested; 0.3.3 passes",
        "32 \u2192 4 lines: 214 programs tried in 31 s, nothing more could be removed.",
        "Original script: original.py, 32 lines",
        "9f2c41d07be3 2023-12-04 Transpose the weight once",
        "0.2.1: no wheel of pool 0.2.1 for Python 3.11",
    ):
        assert said in text
    for kind in ("pairs", "bisection", "descent"):
        assert (
            page.count(f'aria-labelledby="{kind}-title {kind}-desc"')
            == page.count(f'<desc id="{kind}-desc">')
            == 1
        )
    assert (
        '<a href="https://pool.example.org/en/stable/changes.html#releases" rel="noreferrer nofollow noopener">'
        in page
    )
    assert "argparse" in text, "the original program is there too"


def test_every_bisection_is_on_the_page_and_the_first_is_drawn(pages: Site) -> None:
    page = pages.get(f"/runs/{pages.runs['reproduced-with-commits']}").text
    text = words(page)
    for said in (
        'pool: introduced in 5c5c5c5c5c5c "Fuse the heads, fixes #41 for @acme/pool',
        "first in v0.2.4).",
    ):
        assert said in text
    assert text.count("pool: already fails in 0.2.4 (2023-12-09); still fails in 0.4.1") == 1
    assert page.count('aria-labelledby="bisection-title') == 1
    assert page.count('<th scope="row"><code>0.4.1</code></th>') == 1


def test_without_proof_nothing_is_drawn_of_it(pages: Site) -> None:
    page = pages.get(f"/runs/{pages.runs['reproduced']}").text
    assert not any(f"{kind}-title" in page for kind in ("pairs", "bisection", "descent"))
    assert "Bug confirmed" not in page
    half = words(pages.get(f"/runs/{pages.runs['reproduced-half-proven']}").text)
    assert "the bisection ended early: the time limit was reached." in half
    assert "Symptom observed" in half
    assert "Bug confirmed" not in half


def test_runs_are_paired_only_where_they_are_those_that_were_counted() -> None:
    report = REPORTS["reproduced-with-proof"]
    failing, control = pair_attempts(report)
    assert (
        [each.execution.seed for each in failing]
        == [each.execution.seed for each in control]
        == [1, 2, 3, 4, 5]
    )
    assert {each.purpose for each in failing} == {"confirm", "control"}
    assert {each.environment for each in control} == {"e-0.3.3"}
    short = report.model_copy(update={"attempts": report.attempts[:-4][:8]})
    assert pair_attempts(short) == ((), ())


def test_a_live_run_shows_what_goes_on(pages: Site) -> None:
    page = pages.get(f"/runs/{pages.runs['live']}").text
    assert "Confirm with fresh runs run 9 of at most 40" in words(page)
    assert "Runs of the program: 9" in words(page)
    assert page.count('class="done"') == 3
    assert "2 runs are ahead of it" not in words(page)
    assert "1 run is ahead of this one." in words(pages.get(f"/runs/{pages.runs['queued']}").text)


def test_a_defect_of_ours_is_told_without_its_inside(pages: Site) -> None:
    text = words(pages.get(f"/runs/{pages.runs['broken']}").text)
    assert pages.runs["broken"] in text
    assert "internal" not in text


def test_the_script_can_be_saved_as_it_stands_there(pages: Site) -> None:
    answer = pages.get(f"/runs/{pages.runs['reproduced']}/repro.py")
    script = REPORTS["reproduced"].script
    assert script is not None
    assert answer.text == script.source
    assert answer.headers["Content-Disposition"] == 'attachment; filename="repro.py"'
    assert answer.headers["Content-Type"] == "text/x-python; charset=utf-8"


def test_both_programs_can_be_saved_where_one_was_made_smaller(pages: Site) -> None:
    report, run = REPORTS["reproduced-with-proof"], pages.runs["reproduced-with-proof"]
    assert report.reduced is not None
    for name, script in (("repro.py", report.script), ("original.py", report.reduced.before)):
        answer = pages.get(f"/runs/{run}/{name}")
        assert script is not None
        assert answer.text == script.source
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert f'href="/runs/{run}/{name}"' in pages.get(f"/runs/{run}").text
    bare = pages.runs["reproduced"]
    assert pages.get(f"/runs/{bare}/original.py").status == 404
    assert "original.py" not in pages.get(f"/runs/{bare}").text


def test_the_curves_of_a_diagnosis_are_on_the_page_and_a_picture(pages: Site) -> None:
    name = pages.runs["needs_info-diagnosed"]
    assert "Loss, gradients, updates and dead units" in pages.get(f"/runs/{name}").text
    picture = pages.get(f"/runs/{name}/plot.png")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/png")
    assert pages.get(f"/runs/{pages.runs['reproduced']}/plot.png").status == 404


def test_what_only_a_model_names_is_marked_on_the_page(pages: Site) -> None:
    text = pages.get(f"/runs/{pages.runs['needs_info-second_opinion']}").text
    assert "CPP, data preprocessing, named by a model alone" in text
    assert "Second opinion from qwen3-32b: agrees with ACH(1), ACH(3)" in text


def test_the_report_is_there_for_programs(pages: Site) -> None:
    answer = pages.get(f"/runs/{pages.runs['reproduced']}/report.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body)["verdict"]["kind"] == "reproduced"


def test_a_log_is_text_and_nothing_else_and_holds_no_secret(pages: Site) -> None:
    answer = pages.get(f"/runs/{pages.runs['reproduced']}/logs/1")
    assert answer.text == LOG.replace(SECRET, "[redacted]")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_a_log_does_not_tell_which_guess_at_a_weak_password_is_right(pages: Site) -> None:
    assert WEAK in SETTINGS.secrets
    lines = pages.get(f"/runs/{pages.runs['reproduced']}/logs/1").text.splitlines()
    assert f"guesses: 123456 changeme password {WEAK}" in lines


@pytest.mark.parametrize(
    "path",
    [
        "/runs/" + "0" * 32, "/runs/x", "/runs/" + "a" * 5_000, "/runs/%00" + "a" * 31, "/runs/..%2f..%2fetc", "/runs/%ff%fe" + "a" * 20,
        "/runs/{id}/logs/0", "/runs/{id}/logs/-1", "/runs/{id}/logs/99999999999999999999", "/runs/{id}/logs/1.5", "/runs/{id}/logs/x",
        "/runs/{id}/logs/4", "/runs/{id}/logs/%D9%A1", "/runs/{id}/nothing", "/runs/", "/runs", "/static/", "/static/../page.py", "/index.html",
        "/runs/" + "0" * 32 + "/repro.py", "/runs/" + "0" * 32 + "/report.json", "/runs/" + "0" * 32 + "/logs/1",
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_nicely(pages: Site, path: str) -> None:
    answer = pages.get(path.replace("{id}", pages.runs["reproduced"]))
    assert (answer.status, wrong(answer.text)) == (404, [])
    assert "There is no page at this address." in words(answer.text)


@pytest.mark.parametrize("name", ["live", "queued", "waiting", "broken", "needs_info"])
def test_without_a_verdict_there_is_nothing_to_save(pages: Site, name: str) -> None:
    assert pages.get(f"/runs/{pages.runs[name]}/repro.py").status == 404
    assert pages.get(f"/runs/{pages.runs[name]}/report.json").status == (
        200 if name == "needs_info" else 404
    )


def test_the_front_page_counts_and_lists_nothing(pages: Site) -> None:
    answer = pages.get("/")
    assert (answer.status, wrong(answer.text)) == (200, [])
    assert f"Reproduced {REPRODUCED}" in words(answer.text)
    assert "https://github.com/apps/reprise-test" in answer.text
    assert not any(each in answer.text for each in (*pages.runs.values(), "acme", "octocat"))


def test_figures_are_in_prometheus_format(pages: Site) -> None:
    answer = pages.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert f'reprise_verdicts{{kind="reproduced"}} {REPRODUCED}' in lines
    assert 'reprise_runs{state="running"} 1' in lines
    assert "reprise_switches 0" in lines
    samples = [line for line in lines if not line.startswith("#")]
    assert all(line.rpartition(" ")[2].isdigit() for line in samples)
    assert len(samples) == len({line.rpartition(" ")[0] for line in samples})


def test_figures_are_for_those_who_have_the_token(pages: Site) -> None:
    for token in ("", "another", "token of this tes\u00e9".encode().decode("latin-1")):
        refused = pages.get("/metrics", token=token)
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "reprise_" not in refused.text
    settings = SETTINGS.model_copy(update={"metrics_token": None})
    with served(create(settings, pages.store, InlineQueue())) as url:
        assert Site(url, pages.store, {}).get("/metrics").status == 404


def test_refused_credentials_are_said_aloud(pages: Site) -> None:
    assert pages.get("/readyz").status == 200
    assert "reprise_credentials_refused 0" in pages.get("/metrics").text
    pages.store.share(CREDENTIALS_ALARM, f"GitHub refuses POST /x (401). {SECRET}")
    waiting = pages.get("/readyz")
    assert waiting.status == 503
    assert "GitHub refuses POST" in waiting.text
    assert SECRET not in waiting.text
    assert "reprise_credentials_refused 1" in pages.get("/metrics").text
    pages.store.unshare(CREDENTIALS_ALARM)
    assert pages.get("/readyz").status == 200


PRIVATE = Repository(id=2, full_name="acme/secret", private=True)


def test_a_private_run_is_shown_to_those_with_a_link_that_still_counts(pages: Site) -> None:
    report = REPORTS["reproduced"]
    asked = new("private", report, 7, repository=PRIVATE)
    run, _ = pages.store.add_run(asked)
    worked(pages.store, run, report, report.attempts)
    pages.store.put_report(run.id, "worker", report)
    now = time.time()
    good = context.run_name(run, pages.store, now, 30)
    shown = pages.get(f"/runs/{good}")
    assert shown.status == 200
    addresses = re.findall(r'href="(/runs/[^"]+)"', shown.text)
    assert addresses
    assert all(pages.get(address).status == 200 for address in addresses)
    assert pages.get(f"/api/runs/{good}").status == 200
    assert good in pages.get(f"/api/runs?id={good}").text
    old = context.run_name(run, pages.store, now - 32 * 86_400, 30)
    forged = f"{good[:-1]}{'0' if good[-1] != '0' else '1'}"
    later = good.replace(good.split(".")[1], "99999")
    for name in (run.id, old, forged, later, f"{run.id}..", f"{good}.x", f"{run.id}.{10**30}.a"):
        for path in (f"/runs/{name}", f"/runs/{name}/report.json", f"/api/runs/{name}"):
            refused = pages.get(path)
            assert refused.status in {403, 404}, path
            assert "acme/secret" not in refused.text
        assert "acme/secret" not in pages.get(f"/api/runs?id={name}").text
    assert "/reproduce status" in pages.get(f"/runs/{old}").text


def test_no_published_report_names_the_hosts_folders(pages: Site) -> None:
    for name, id_ in pages.runs.items():
        for path in (f"/runs/{id_}", f"/runs/{id_}/report.json", f"/api/runs/{id_}"):
            assert not re.search(r"/home/|/root/|\\.cache|/var/", pages.get(path).text), name


def test_assets_last(pages: Site) -> None:
    for path, media in (
        ("/static/style.css", "text/css; charset=utf-8"),
        ("/static/icon.svg", "image/svg+xml"),
    ):
        answer = pages.get(path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, media)
        assert "immutable" in answer.headers["Cache-Control"]
    assert b"http" not in pages.get("/static/style.css").body, "nothing is loaded from elsewhere"


def test_a_question_without_a_body_is_answered_without_one(pages: Site) -> None:
    assert pages.get(f"/runs/{pages.runs['reproduced']}", "HEAD").body == b""
    assert pages.get(f"/runs/{pages.runs['reproduced']}", "POST").status == 405


@pytest.mark.parametrize("hostile", TEXTS, ids=lambda each: each.id)
def test_hostile_text_in_every_place_of_a_report_is_only_shown(hostile: Hostile) -> None:
    asked = run(
        options=job_options(python=hostile.text, pins=(hostile.text,)), approved_by=hostile.text
    )
    for name in (
        "reproduced-with-control",
        "reproduced-with-proof",
        "different_failure",
        "needs_info",
        "setup_failed",
        "not_reproduced",
    ):
        report = poisoned(name, hostile.text)
        shown = view(asked, report, (), github_url="https://github.com", now=NOW)
        assert wrong(run_page(shown)) == []


@pytest.mark.parametrize("hostile", TEXTS, ids=lambda each: each.id)
def test_hostile_text_in_a_run_under_way_is_only_shown(hostile: Hostile) -> None:
    text = hostile.text
    repository = run().request.repository.model_copy(update={"full_name": text})
    issue = run().request.job.issue.model_copy(update={"title": text})
    for values in (
        {"progress": f"search: {text}", "stage": "search"},
        {"cancelled_by": text},
        {"error": text, "state": "failed"},
    ):
        asked = run(**values)
        job = asked.request.job.model_copy(update={"issue": issue})
        request = asked.request.model_copy(
            update={"requester": text, "repository": repository, "job": job}
        )
        shown = view(
            asked.model_copy(update={"request": request}),
            None,
            (),
            github_url="https://github.com",
            now=NOW,
        )
        assert shown.issue_url == ""
        assert wrong(run_page(shown)) == []


def test_the_reader_of_these_tests_sees_what_acts() -> None:
    for bad in (
        "<script>",
        "<p onclick=x></p>",
        '<a href="javascript:x"></a>',
        "<p>",
        "</p>",
        "<!-- x -->",
        "\u202e",
        '<p style="x"></p>',
    ):
        assert wrong(bad), bad


class Away(MemoryStore):
    """A store that has lost its database."""

    def counts(self) -> dict[str, int]:
        raise TransientError("The database does not answer: password=hunter2.")

    def run(self, run: str) -> None:
        raise TransientError("The database does not answer: password=hunter2.")


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/runs/" + "0" * 32, "/runs/" + "0" * 32 + "/repro.py"]
)
def test_a_store_that_is_away_is_said_so(path: str) -> None:
    store: AppStore = Away()
    with served(create(SETTINGS, store, InlineQueue())) as url:
        answer = Site(url, store, {}).get(path)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "30")
    assert "hunter2" not in answer.text


class Listening(MemoryStore):
    """A store that remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def run(self, run: str) -> None:
        self.asked.append(run)


def test_the_store_is_asked_only_for_what_can_be_a_run() -> None:
    store = Listening()
    with served(create(SETTINGS, store, InlineQueue())) as url:
        site = Site(url, store, {})
        for name in (
            "%00" + "a" * 31,
            "x",
            "a" * 5_000,
            "%ff%fe" + "a" * 20,
            "a%20b" * 8,
            "b" * 32,
        ):
            assert site.get(f"/runs/{name}").status == 404
    assert store.asked == ["b" * 32]


def test_a_kill_switch_is_told_on_the_front_page() -> None:
    store = MemoryStore()
    store.set_switch("all", "Being moved, <b>back at noon</b>.")
    with served(create(SETTINGS, store, InlineQueue())) as url:
        site = Site(url, store, {})
        assert "Paused: Being moved, <b>back at noon</b>." in words(site.get("/").text)
        assert "reprise_switches 1" in site.get("/metrics").text


def test_the_webhook_and_health_stand_before_the_pages() -> None:
    store = MemoryStore()
    with served(create(SETTINGS, store, InlineQueue())) as url:
        site = Site(url, store, {})
        assert site.get("/healthz").text == "ok\n"
        assert site.get("/webhook", "POST").status in {400, 401, 403}
        assert site.get("/").status == 200


def test_pages_load_neither_the_engine_nor_the_clients() -> None:
    code = "import sys, handlers.pages, handlers.app; print([m for m in sys.modules if m.startswith(%r)])"
    heavy = (
        "bot.issues.reproduce",
        "githubkit",
        "docker",
        "arq",
        "httpx",
        "rich",
        "sandbox.docker",
        "jsonschema",
    )
    done = subprocess.run(
        [sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("value", "round_number"),
    [(0, 0.1), (0.3, 0.5), (1, 1), (1.01, 2), (4.9, 5), (7, 10), (120, 200), (700, 1000)],
)
def test_the_axis_ends_on_a_round_number_above_the_bars(value: float, round_number: float) -> None:
    assert ceiling(value) == pytest.approx(round_number)


def test_templates_and_assets_travel_with_the_package() -> None:
    here = Path(sys.modules["bot.report.html"].__file__ or "").parent
    assert {path.name for path in here.rglob("*") if path.suffix in {".html", ".css", ".svg"}} == {
        "base.html", "landing.html", "list.html", "missing.html", "blocks.html", "run.html", "paper.html", "style.css", "icon.svg",
    }  # fmt: skip


def test_a_page_says_which_part_was_a_models(pages: Site) -> None:
    said = words(pages.get(f"/runs/{pages.runs['reproduced-by-model']}").text)
    assert "a model (writer-1) wrote this one. Only its runs decide the verdict." in said
    assert "Claim: Layer(bias=False) creates lin_key with a bias." in said
    assert "The model's hypothesis and attempts" in said
    assert "model: 5 calls, 4,634 tokens, 0.02 USD" in said
    assert "The model's hypothesis and attempts" not in words(
        pages.get(f"/runs/{pages.runs['reproduced']}").text
    )
