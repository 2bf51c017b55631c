"""What an operator can follow: the ids of the work in hand on every line of the log and, if asked
for, OpenTelemetry spans from the webhook to the attempts of a run.

The trace is named after the delivery: its id on GitHub is the id of the trace. So web process and
workers need to pass nothing on, and what the reaper offers again belongs to the same trace.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from hashlib import sha256
from importlib import metadata
from threading import Thread
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, Span, SpanContext, SpanKind, Tracer

from bot.app.ports import RequestHook, Write
from bot.kernel.attempt import Attempt
from bot.kernel.errors import UserError
from bot.kernel.ports import Progress
from bot.kernel.values import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

# The ids of the work in hand. One dictionary is shared by the threads of a task.

_ids: ContextVar[dict[str, str | int] | None] = ContextVar("ids", default=None)


def current_ids() -> dict[str, str | int]:
    """The delivery, run and attempt that this thread works on, as far as there are any; and the
    trace that they belong to.
    """
    ids = _ids.get() or {}
    delivery = ids.get("delivery")
    return {**ids, "trace_id": f"{trace_id(str(delivery)):032x}"} if delivery else {**ids}


@contextmanager
def work_ids(**ids: str | int) -> Iterator[None]:
    """Add ids while the block lasts."""
    token = _ids.set({**(_ids.get() or {}), **ids})
    try:
        yield
    finally:
        _ids.reset(token)


def helper_thread(target: Callable[[], None], name: str) -> Thread:
    """A thread, not yet started, that works on the same as this one."""
    return Thread(target=copy_context().run, args=(target,), name=name, daemon=True)


# Spans. Attributes are ids, kinds and numbers: never a text from an issue, a program or a model.


def trace_id(guid: str) -> int:
    """The trace of a delivery: the digits of its id, or a hash where that is no UUID."""
    digits = guid.partition(".")[0].replace("-", "")
    try:
        number = int(digits, 16) if len(digits) == 32 else 0
    except ValueError:
        number = 0
    return number or int.from_bytes(sha256(guid.encode()).digest()[:16])


def _root_id(guid: str) -> int:
    """The span of the webhook request that brought a delivery; one request may bring several."""
    return int.from_bytes(sha256(guid.partition(".")[0].encode()).digest()[:8])


_root: ContextVar[str] = ContextVar("root")
_NO_TRACER = NoOpTracer()


@contextmanager
def _entered(span: Span) -> Iterator[None]:
    """The span is the current one while the block lasts, and then ends. Of an error only the class
    is told: its message may quote an issue.
    """
    with trace.use_span(span, True, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except BaseException as error:
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


class Telemetry:
    """Spans of deliveries and runs. Without a provider there are none."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("reprise") if provider else _NO_TRACER

    def received(self, guid: str, event: str, began_ns: int) -> None:
        """The webhook request of a new delivery has been answered: the root of its trace."""
        if self._provider is None:
            return
        token = _root.set(guid)
        try:
            attributes = {"reprise.delivery": guid, "github.event": event}
            root = self._tracer.start_span(
                "webhook", kind=SpanKind.SERVER, attributes=attributes, start_time=began_ns
            )
            root.end()
        finally:
            _root.reset(token)

    @contextmanager
    def work(self, kind: str, guid: str, **details: str | int) -> Iterator[WorkSpan]:
        """The work on a delivery or on one of its runs while the block lasts. Details become
        attributes `reprise.<name>`.
        """
        about = {f"reprise.{name}": value for name, value in details.items()}
        parent = trace.set_span_in_context(self._parent(guid))
        attributes = {"reprise.delivery": guid, **about}
        span = self._tracer.start_span(kind, parent, SpanKind.CONSUMER, attributes)
        work = WorkSpan(self._tracer, span)
        with _entered(span):
            try:
                yield work
            finally:
                work.close()

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """A request to another service, below the task in hand, if there is one."""
        if not trace.get_current_span().is_recording():
            yield
            return
        with _entered(self._tracer.start_span(name, kind=SpanKind.CLIENT)):
            yield

    def close(self) -> None:
        """Send what was not sent yet."""
        if self._provider is not None:
            self._provider.shutdown()

    def _parent(self, guid: str) -> Span:
        if self._provider is None:
            return trace.INVALID_SPAN
        from opentelemetry.sdk.trace.sampling import Decision

        sampled = self._provider.sampler.should_sample(None, trace_id(guid), "webhook")
        is_sampled = sampled.decision is Decision.RECORD_AND_SAMPLE
        flags = trace.TraceFlags(int(is_sampled))
        return NonRecordingSpan(SpanContext(trace_id(guid), _root_id(guid), True, flags))


class WorkSpan:
    """The span of a task, with the stages and attempts below it."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer, self._span = tracer, span
        self._stage_name = ""
        self._stage: Span = trace.INVALID_SPAN

    def set(self, name: str, value: str | int) -> None:
        """Add `reprise.<name>` to the span."""
        self._span.set_attribute(f"reprise.{name}", value)

    def progress(self, progress: Progress) -> None:
        """A new stage ends the one before."""
        if progress.stage == self._stage_name:
            return
        self._stage.end()
        below = trace.set_span_in_context(self._span)
        self._stage_name = progress.stage
        self._stage = self._tracer.start_span(f"stage {progress.stage}", below)

    def recorded(self, entry: Record) -> None:
        """An entry of the journal: an attempt has just ended."""
        if not isinstance(entry, Attempt):
            return
        if (ids := _ids.get()) is not None:
            ids["attempt"] = entry.number
        run, now = entry.execution, time.time_ns()
        attributes: dict[str, str | int | bool] = {
            "reprise.attempt": entry.number,
            "reprise.purpose": entry.purpose,
            "reprise.match": entry.judgement.match.value,
            "reprise.timed_out": run.timed_out,
            "reprise.oom": run.oom,
        }
        if run.exit_code is not None:
            attributes["process.exit.code"] = run.exit_code
        parent = self._stage if self._stage.is_recording() else self._span
        below = trace.set_span_in_context(parent)
        began = now - int(run.seconds * 1e9)
        span = self._tracer.start_span("attempt", below, attributes=attributes, start_time=began)
        span.end(now)

    def close(self) -> None:
        """End the last stage."""
        self._stage.end()


def github_spans(telemetry: Telemetry) -> RequestHook:
    """The hook that makes a span of each request to GitHub below the task in hand."""

    @contextmanager
    def enclose(_installation: int, write: Write | None) -> Iterator[None]:
        with telemetry.request(f"github {write.what if write else 'read'}"):
            yield

    return enclose


# The SDK, which only an operator who asks for spans needs.


def spans_to(processor: SpanProcessor) -> TracerProvider:
    """The provider of spans, with the SDK's own environment variables for all the rest."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        """Random ids, but for the root of a delivery's trace."""

        def generate_trace_id(self) -> int:
            guid = _root.get("")
            return trace_id(guid) if guid else super().generate_trace_id()

        def generate_span_id(self) -> int:
            guid = _root.get("")
            return _root_id(guid) if guid else super().generate_span_id()

    about = {"service.name": "reprise", "service.version": metadata.version("reprise")}
    provider = TracerProvider(
        resource=Resource(about).merge(OTELResourceDetector().detect()), id_generator=Ids()
    )
    provider.add_span_processor(processor)
    return provider


def by_otlp() -> Telemetry:
    """Spans by OTLP over HTTP to where OTEL_EXPORTER_OTLP_ENDPOINT says. Raises UserError without
    the libraries.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise UserError(
            "REPRISE_TELEMETRY is on, but OpenTelemetry's SDK is not installed.",
            "Install reprise[otel], or unset REPRISE_TELEMETRY.",
        ) from None
    return Telemetry(spans_to(BatchSpanProcessor(OTLPSpanExporter())))
