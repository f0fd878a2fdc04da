"""Traces on a real server, through real workers: from an agent's span to its memories."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.log import logged
from helpers.services.fake_http import serving
from helpers.stories.scenario import PATIENT, environ, home, recorded, thread_worker
from helpers.tracing.collector import FakeCollector, Received
from helpers.tracing.spans import Kept, context_of, is_linked, kept, traceparent
from memorybus.agent.aio import AsyncMemoryBus
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, TraceIdRatioBased
from opentelemetry.trace import Tracer

KINDS = (
    "Blind",
    "Keyed",
    "KeyedSide",
    "KeyedBulk",
    "KeyedBulkSide",
    "Lookup",
    "LookupSide",
    "Transactional",
)
PERSON, TEXT, SESSION = "Annegret", "the parrot is called Admiral", "her-session"


def told(settings: Settings, *texts: str) -> None:
    """Publish turns of one session, and wait until the log has them."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(SESSION, user=PERSON, warm=False)
        for text in texts:
            session.turn_completed(text, "ok")
        assert bus.flush(timeout=30)


def in_log(settings: Settings) -> list[str]:
    """Return what the envelopes in the log say of their publishers' spans."""
    return [event.envelope.trace for event in logged(settings)]


def counts(span: ReadableSpan) -> int:
    """Return how many events a span tells of."""
    return int(str((span.attributes or {})["messaging.batch.message_count"]))


@pytest.mark.parametrize("kind", KINDS)
def test_an_apply_is_linked_to_what_was_published(redis_url, make_settings, kind):
    """From publish over append to apply, whatever the provider's class; no text, nobody's name."""
    settings = make_settings(url=redis_url, **recorded(kind))
    with kept() as spans:
        with spans.tracer.start_as_current_span("turn") as turn:
            told(settings, TEXT)
        with thread_worker(settings):
            wait_until(lambda: linked(spans), "the turn is applied in a span")
        started, published = spans.of("publish")
        assert in_log(settings) == [traceparent(started), traceparent(published)]
        assert context_of(published).trace_id == turn.get_span_context().trace_id
        assert sum(map(counts, spans.of("append"))) == 2
        everything = [span for name in ("publish", "append", "apply") for span in spans.of(name)]
    said = json.dumps([span.to_json() for span in everything])
    assert not any(word in said for word in (PERSON, SESSION, "parrot"))


def linked(spans: Kept) -> bool:
    """Say whether the last event that was published is applied in a span that is linked to it."""
    links = [link for span in spans.of("apply") for link in span.links]
    return is_linked(links, spans.of("publish")[-1])


@pytest.mark.parametrize("kind", ["Keyed", "KeyedSide", "Transactional"])
def test_a_failing_call_is_seen(redis_url, make_settings, kind):
    """A refused event leaves a failed span with the error's class, and no word of the event."""
    settings = make_settings(url=redis_url, **recorded(kind))
    with kept() as spans:
        told(settings, f"!permanent {TEXT}")
        with thread_worker(settings):
            failed = wait_until(
                lambda: [s for s in spans.of("apply") if not s.status.is_ok], "a failed span"
            )
    assert (failed[0].attributes or {})["error.type"] == "Permanent"
    assert "parrot" not in failed[0].to_json()


def test_an_append_tells_of_what_it_sends(redis_url, make_settings):
    """What a spool still holds of a process before is in the log already: no span counts it."""
    settings = make_settings(url=redis_url)
    with kept() as spans:
        for _ in range(2):
            told(settings, TEXT)
        assert sum(map(counts, spans.of("append"))) == len(spans.of("publish")) == 3


def test_asyncio_goes_on_with_the_trace(settings):
    """What a coroutine publishes and asks is below its own span, though a thread does it."""

    async def turn(tracer: Tracer) -> int:
        async with AsyncMemoryBus.connect(settings) as bus:
            session = await bus.session(SESSION, warm=False)
            with tracer.start_as_current_span("turn") as span:
                await session.turn_completed(TEXT, "ok")
                await session.prefetch("What is the parrot called?", wait=0)
            return span.get_span_context().span_id

    with kept() as spans:
        parent = asyncio.run(turn(spans.tracer))
        below = [spans.of("publish")[-1], spans.one("recall")]
    assert [span.parent.span_id for span in below if span.parent] == [parent, parent]


@pytest.mark.parametrize(("sampler", "last"), [(DEFAULT_ON, "13"), (TraceIdRatioBased(0), "02")])
def test_an_envelope_says_whether_its_publisher_is_sampled(redis_url, make_settings, sampler, last):
    """The trace is handed on also where it is not sampled, as W3C asks; it says so."""
    settings = make_settings(url=redis_url)
    with kept(sampler):
        told(settings, TEXT)
    assert {trace[-1] in last for trace in in_log(settings)} == {True}


def test_without_tracers_an_envelope_has_no_trace(settings):
    """Who has no tracers pays no byte for them."""
    told(settings, TEXT)
    assert in_log(settings) == ["", ""]


@pytest.fixture(name="collector")
def _collector() -> Iterator[FakeCollector]:
    with serving(FakeCollector()) as server:
        yield server


def traced_worker(spawn: Spawn, settings: Settings, url: str, **otel: str) -> Child:
    """Start a worker process that exports to a collector."""
    told_by = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50", **otel}
    command = ("-m", "memorybus_workers", "worker", "--jobs", "1")
    child = spawn(*command, env=environ(settings) | told_by)
    child.wait_output('"ready":true')
    return child


@pytest.mark.timeout(240)
def test_one_trace_from_a_prompt_to_its_memories(redis_url, make_settings, spawn, collector):
    """An agent's turn, its send, the worker's apply and both sides of a recall, by OTLP."""
    sure: Any = {**PATIENT, "prefetch_wait": 30.0}
    settings = make_settings(url=redis_url, providers=("holographic",), **sure)
    traced_worker(spawn, settings, collector.url)
    with kept() as spans, MemoryBus.connect(settings) as bus:
        session = bus.session(SESSION, user=PERSON, warm=False)
        with spans.tracer.start_as_current_span("turn") as turn:
            session.turn_completed(TEXT, "I see.")
            assert bus.flush(timeout=30)
            wait_until(lambda: "Admiral" in session.prefetch("What is the parrot called?"), "it")
        published = spans.of("publish")[-1]
        asked = spans.of("recall")
    at = context_of(published)
    ids = (f"{at.trace_id:032x}", f"{at.span_id:016x}")
    apply = wait_until(lambda: linked_to(collector.of("apply"), ids), "the apply arrived")
    assert (apply.service, apply.kind, apply.parent) == ("memorybus-worker", 5, "")
    assert apply.told["messaging.consumer.group.name"] == "holographic"
    answers = wait_until(lambda: collector.of("answer"), "the answer arrived")
    assert answers[0].trace == f"{turn.get_span_context().trace_id:032x}"
    assert answers[0].parent in {f"{context_of(one).span_id:016x}" for one in asked}
    everything = b"".join(span.body for span in collector.spans)
    assert not any(word.encode() in everything for word in (PERSON, SESSION, "parrot"))


def linked_to(spans: list[Received], ids: tuple[str, str]) -> Received | None:
    """Return the span that is linked to another."""
    return next((span for span in spans if ids in span.links), None)


def test_last_spans_go_out_before_a_worker_ends(redis_url, make_settings, spawn, collector):
    """A worker that is told to end first sends what its exporter still holds."""
    settings = make_settings(url=redis_url, **recorded("Keyed"))
    with kept():
        told(settings, TEXT)
    child = traced_worker(spawn, settings, collector.url, OTEL_BSP_SCHEDULE_DELAY="60000")
    wait_until(lambda: applied(settings), "it is applied")
    child.terminate()
    assert child.wait() == 0
    assert collector.of("apply")


def applied(settings: Settings) -> bool:
    """Say whether the provider has what was told."""
    return TEXT in texts(home(settings))


def test_a_collector_that_is_away_stops_nothing(redis_url, make_settings, spawn):
    """Without a collector a worker applies, says so once, and ends in order."""
    settings = make_settings(url=redis_url, **recorded("Keyed"))
    with kept():
        told(settings, TEXT)
    child = traced_worker(spawn, settings, "http://127.0.0.1:9")
    wait_until(lambda: applied(settings), "it is applied")
    wait_until(lambda: "/v1/traces" in child.output(), "it says that spans do not go out")
    child.terminate()
    assert child.wait() == 0
    assert child.output().count("/v1/traces") == 1


@pytest.mark.parametrize(
    ("otel", "remedy"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "use http/protobuf or grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "opentelemetry-exporter-otlp-proto-grpc"),
    ],
)
def test_what_cannot_be_exported_is_said(redis_url, make_settings, spawn, otel, remedy):
    """An exporter that is not there costs a line with the remedy; the worker works."""
    settings = make_settings(url=redis_url, **recorded("Keyed"))
    child = traced_worker(spawn, settings, "http://127.0.0.1:9", **otel)
    assert remedy in child.output()
