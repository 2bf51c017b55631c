"""What an operator can follow: spans from the webhook to the attempts, and the ids in the log."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from random import Random
from threading import Thread
from uuid import UUID

import pytest
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr
from starlette.testclient import TestClient

from bot.app import telemetry
from bot.app.context import AppContext
from bot.app.telemetry import Telemetry, current_ids, helper_thread, work_ids
from bot.app.worker import Service
from bot.kernel.errors import TransientError, UserError
from bot.kernel.journal import ATTEMPTS
from bot.kernel.settings import Settings
from handlers.app import create
from handlers.server import JsonLines
from tests.unit.test_service import BODY, MESSAGE, App

GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
TRACE = int(GUID.replace("-", ""), 16)
SECRET = "a secret of this test"


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    exporter.telemetry = Telemetry(telemetry.spans_to(SimpleSpanProcessor(exporter)))
    return exporter


def followed(spans):
    """An App whose spans are kept."""
    app = App()
    hub = app.hub.hooked(telemetry.github_spans(spans.telemetry))
    app.service = Service(
        AppContext(app.store, app.queue, hub, app._engine, app.house, telemetry=spans.telemetry)
    )
    return app


def post(app, spans, guid=GUID):
    """GitHub delivers an issue to the web process of this App."""
    repository = {"id": 7, "full_name": "acme/lib", "clone_url": "https://github.com/acme/lib.git"}
    issue = {"number": 3, "title": "fit fails", "body": BODY, "user": {"login": "ann"}}
    person = {"login": "ann", "type": "User"}
    payload = {"action": "opened", "installation": {"id": 1}, "sender": person}
    body = json.dumps(payload | {"repository": repository, "issue": issue}).encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-github-event": "issues", "x-github-delivery": guid}
    headers |= {"content-type": "application/json", "x-hub-signature-256": signature}
    settings = Settings(webhook_secret=SecretStr(SECRET), app_id=7, app_slug="reprise")
    app.hub.issue("acme/lib", 3)
    with TestClient(create(settings, app.store, app.queue, spans.telemetry)) as client:
        return client.post("/webhook", content=body, headers=headers).status_code


def named(spans):
    return {span.name: span for span in spans.get_finished_spans()}


def test_one_trace_leads_from_the_webhook_to_the_attempts_of_the_run(spans):
    app = followed(spans)
    assert post(app, spans) == 202
    app.queue.drain(app.service.handle)
    assert [run.verdict for run in app.runs()] == ["reproduced"]

    found = named(spans)
    assert {span.context.trace_id for span in spans.get_finished_spans()} == {TRACE}
    root, delivery, run = found["webhook"], found["delivery"], found["run"]
    assert root.parent is None
    assert delivery.parent.span_id == run.parent.span_id == root.context.span_id
    stage, attempt = found["stage confirm"], found["attempt"]
    assert stage.parent.span_id == run.context.span_id
    stages = {span.context.span_id for name, span in found.items() if name.startswith("stage")}
    assert attempt.parent.span_id in stages
    assert found["github comment"].parent.span_id == run.context.span_id
    assert run.attributes["reprise.run"] == app.runs()[0].id
    assert run.attributes["reprise.verdict"] == "reproduced"
    attempts = [span for span in spans.get_finished_spans() if span.name == "attempt"]
    assert [span.attributes["reprise.attempt"] for span in attempts] == [
        *range(1, len(attempts) + 1)
    ]
    assert attempts[0].end_time - attempts[0].start_time == pytest.approx(1e8, rel=0.01)


def test_spans_have_no_text_of_the_issue_or_of_an_error(spans):
    app = followed(spans)
    post(app, spans)
    app.hub.fail(TransientError(f"GitHub answered 500 to {MESSAGE}."), "create_comment")
    app.queue.drain(app.service.handle)
    errors = [span for span in spans.get_finished_spans() if not span.status.is_ok]
    everything = "".join(span.to_json() for span in spans.get_finished_spans())
    assert [span.status.description for span in errors if span.status.description] == [
        "TransientError"
    ]
    for text in (MESSAGE, "fit fails", "import lib", "acme/lib", SECRET):
        assert text not in everything


def test_what_is_delivered_again_makes_no_second_root(spans):
    app = followed(spans)
    assert [post(app, spans), post(app, spans)] == [202, 200]
    assert [span.name for span in spans.get_finished_spans()] == ["webhook"]


def test_the_sampler_of_the_environment_decides_for_all_processes_alike(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    names_by_trace = {}
    for _process in ("web", "worker"):
        exporter = InMemorySpanExporter()
        source = Telemetry(telemetry.spans_to(SimpleSpanProcessor(exporter)))
        for number in range(40):
            guid = str(UUID(int=Random(number).getrandbits(128)))
            if _process == "web":
                source.received(guid, "issues", 1)
            else:
                with source.work("delivery", guid):
                    pass
        for span in exporter.get_finished_spans():
            names_by_trace.setdefault(span.context.trace_id, []).append(span.name)
    assert 5 < len(names_by_trace) < 35
    assert set(map(tuple, names_by_trace.values())) == {("webhook", "delivery")}


def test_without_a_provider_nothing_is_recorded_and_the_sdk_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.sampling", None)
    app = App()
    delivery = app.deliver()
    assert [run.request.delivery for run in app.runs()] == [delivery.guid]


def test_spans_need_the_sdk(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(UserError, match="is not installed") as refused:
        telemetry.by_otlp()
    assert "reprise[otel]" in refused.value.fix


def test_spans_go_where_the_variables_of_opentelemetry_say(monkeypatch):
    posted = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        source = telemetry.by_otlp()
        source.received(GUID, "issues", 1)
        source.close()
        server.shutdown()
    [(path, body)] = posted
    assert path == "/v1/traces"
    assert TRACE.to_bytes(16) in body


@pytest.mark.parametrize("guid", ["guid-1", "0" * 32, "z" * 32])
def test_a_delivery_without_a_uuid_has_a_trace_as_well(guid):
    assert telemetry.trace_id(guid) == telemetry.trace_id(guid)
    assert 0 < telemetry.trace_id(guid) < 1 << 128
    assert telemetry.trace_id(guid) != telemetry.trace_id(f"{guid}0")


def test_several_deliveries_of_one_request_share_its_trace():
    assert telemetry.trace_id(f"{GUID}.2") == telemetry.trace_id(GUID) == TRACE


def test_fastapi_makes_no_spans_of_addresses_that_open_private_pages(spans, monkeypatch):
    provider = telemetry.spans_to(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    app = App()
    settings = Settings(webhook_secret=SecretStr(SECRET), app_id=7)
    for path in ("/runs/secret-of-a-private-run", "/api/runs/secret-of-a-private-run"):
        with TestClient(create(settings, app.store, app.queue)) as client:
            assert client.get(path).status_code == 404
    assert spans.get_finished_spans() == ()
    with TestClient(FastAPI()) as client:
        client.get("/runs/secret-of-a-private-run")
    assert "secret-of-a-private-run" in spans.get_finished_spans()[0].to_json()


# --- the log ---------------------------------------------------------------------------------


@pytest.fixture
def lines():
    """The log as JSON, line by line."""
    kept = []

    class Keep(logging.Handler):
        def emit(self, record):
            kept.append(json.loads(self.format(record)))

    handler, root = Keep(), logging.getLogger()
    handler.setFormatter(JsonLines([SECRET]))
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield kept
    root.removeHandler(handler)
    root.setLevel(before)


def test_each_line_of_the_log_has_the_ids_of_its_work(lines):
    log, done = logging.getLogger("a.test"), []
    with work_ids(delivery=GUID), work_ids(run="r1", attempt=4):
        log.info("here %d", 1)
        helper = helper_thread(lambda: done.append(log.warning("beside")), "helper")
        helper.start()
        helper.join()
    log.info("after")
    ids = {"delivery": GUID, "run": "r1", "attempt": 4, "trace_id": GUID.replace("-", "")}
    here, beside, after = lines
    assert {**here, **ids} == here
    assert (here["level"], here["logger"], here["message"]) == ("info", "a.test", "here 1")
    assert {**beside, **ids, "level": "warning"} == beside
    assert not {*ids} & {*after}
    assert current_ids() == {}


def test_a_run_logs_its_delivery_its_id_and_the_attempt_it_has_come_to(lines):
    app = App()
    app.hub.fail(TransientError("GitHub is away."), "create_comment", times=2)
    delivery = app.deliver()
    told = [line for line in lines if line["message"].startswith("run ")]
    assert told
    last = told[-1]
    assert (last["delivery"], last["run"]) == (delivery.guid, app.runs()[0].id)
    assert last["attempt"] == app.store.entries(last["run"], ATTEMPTS)[-1].number


def test_a_line_hides_secrets_and_is_one_line(lines):
    try:
        int(f"{SECRET}\nand more")
    except ValueError:
        logging.getLogger("a.test").exception("failed: %s", f"{SECRET}\x1b[31m\nnext")
    line = lines[0]
    assert SECRET not in json.dumps(line)
    assert "ValueError" in line["exception"]
    assert "\x1b" not in line["message"]
    assert line["message"].endswith("\nnext")
