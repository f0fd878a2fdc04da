"""The spans of this process, kept by the SDK's in-memory exporter."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Sampler
from opentelemetry.trace import Link, SpanContext, Tracer


class Kept:
    """What ended so far.

    Attributes:
        tracer: of a host whose code the bus works for.
    """

    def __init__(self, exporter: InMemorySpanExporter, tracer: Tracer) -> None:
        self._exporter = exporter
        self.tracer = tracer

    def of(self, operation: str) -> Sequence[ReadableSpan]:
        """Return the spans of an operation, in the order of their ends."""
        spans = self._exporter.get_finished_spans()
        return [span for span in spans if span.name.split(" ")[0] == operation]

    def one(self, operation: str) -> ReadableSpan:
        """Return the only span of an operation."""
        (span,) = self.of(operation)
        return span


@contextmanager
def kept(sampler: Sampler = DEFAULT_ON) -> Iterator[Kept]:
    """Give this process a provider of tracers until the block ends, as OpenTelemetry's tests do."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield Kept(exporter, provider.get_tracer("host"))
    provider.shutdown()


def context_of(span: ReadableSpan) -> SpanContext:
    """Return the context of a span that was kept."""
    assert span.context is not None
    return span.context


def traceparent(span: ReadableSpan) -> str:
    """Return a span's traceparent, spelled here once more."""
    at = context_of(span)
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}"


def is_linked(links: Sequence[Link], span: ReadableSpan) -> bool:
    """Say whether one of some links leads to a span."""
    at = context_of(span)
    ids = [(link.context.trace_id, link.context.span_id) for link in links]
    return (at.trace_id, at.span_id) in ids
