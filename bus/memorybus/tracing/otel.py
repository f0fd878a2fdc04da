"""Makes spans with OpenTelemetry's API, named by its conventions for messaging (1.44).

Publishing and applying are reported as messaging: the log is the destination, a provider instance
is a consumer group. No text, person or session enters a span: an event is named by its id, an error
by its class.

This is the only module that imports OpenTelemetry's API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextvars import Token
from itertools import islice
from types import TracebackType
from typing import Final, Self

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from memorybus.clock import Clock

_FORM: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)
_SAMPLED: Final = frozenset("13579bdf")
"""Last digits of a traceparent whose lowest flag is set: it is sampled."""

_MOST_LINKS = 128  # the most links of one span: the SDK keeps this many by default
MOST_APPLIES: Final = 100
"""The most spans for `apply` that one process begins in a second (G10).

A lane that catches up applies hundreds of batches a second, and nearly each batch has an event of a
sampled publisher. Spans for all of them would take a seventh of the worker's time.
"""

_ERROR = "error.type"
_COUNT = "messaging.batch.message_count"
_PROVIDER = "memorybus.provider"


def make_spans(destination: str, clock: Clock) -> Spans | None:
    """Return the maker of spans; None while this process has no provider of tracers."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        return None
    return Spans(destination, provider.get_tracer("memorybus"), clock)


class Span:
    """A span that is the current one of its block."""

    __slots__ = ("_before", "_span")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._before: Token[Context] | None = None

    @property
    def trace(self) -> str:
        return _format_traceparent(self._span)

    def set_counts(self, **counts: int) -> None:
        """Set the numbers that the block found, as attributes under ``memorybus.``."""
        for name, count in counts.items():
            self._span.set_attribute(f"memorybus.{name}", count)

    def __enter__(self) -> Self:
        self._before = context.attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it; only the class of an error is recorded, since its text may quote a person."""
        if self._before is not None:
            context.detach(self._before)
        if error is not None:
            _record_error(self._span, error)
        self._span.end()


class Spans:
    """Makes spans with one tracer. Safe to call from any thread."""

    def __init__(self, destination: str, tracer: Tracer, clock: Clock) -> None:
        self._destination = destination
        self._tracer = tracer
        self._applies = _PerSecond(MOST_APPLIES, clock)

    def current(self) -> str:
        return _format_traceparent(trace.get_current_span())

    def failed(self, error: BaseException) -> None:
        _record_error(trace.get_current_span(), error)

    def publish(self, event_id: str, kind: str) -> Span:
        """See `Tracing.publish`: a child of the agent's span, or a trace of its own."""
        attributes = self._messaging_attributes("publish", "create")
        attributes["messaging.message.id"] = event_id
        attributes["memorybus.event.type"] = kind
        return self._start_span("publish", SpanKind.PRODUCER, attributes, context.get_current())

    def append(self, count: int, traces: Iterable[str]) -> Span | None:
        """See `Tracing.append`: a child of the first publisher that is sampled, linked to all."""
        sampled = _sampled(traces)
        if sampled is None:
            return None
        attributes = self._messaging_attributes("append", "send")
        attributes[_COUNT] = count
        first = _parent_context(sampled[0]) if sampled else Context()
        return self._start_span("append", SpanKind.CLIENT, attributes, first, sampled[1:])

    def apply(
        self, provider: str, partition: int, count: int, traces: Iterable[str]
    ) -> Span | None:
        """See `Tracing.apply`: a trace of its own, linked to the publishers that are sampled."""
        sampled = _sampled(traces)
        if sampled is None or not self._applies.take():
            return None
        attributes = self._messaging_attributes("apply", "process")
        attributes["messaging.consumer.group.name"] = provider
        attributes["messaging.destination.partition.id"] = str(partition)
        attributes[_COUNT] = count
        attributes[_PROVIDER] = provider
        return self._start_span("apply", SpanKind.CONSUMER, attributes, Context(), sampled)

    def recall(self) -> Span:
        """See `Tracing.recall`: a child of the agent's span, or a trace of its own."""
        return self._start_span("recall", SpanKind.CLIENT, {}, context.get_current())

    def answer(self, provider: str, trace: str) -> Span:
        """See `Tracing.answer`: a child of the asker's span."""
        return self._start_span(
            "answer", SpanKind.SERVER, {_PROVIDER: provider}, _parent_context(trace)
        )

    def _messaging_attributes(self, operation: str, kind: str) -> dict[str, AttributeValue]:
        return {
            "messaging.system": "memorybus",
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            "messaging.destination.name": self._destination,
        }

    def _start_span(
        self,
        operation: str,
        kind: SpanKind,
        attributes: dict[str, AttributeValue],
        parent: Context,
        links: Iterable[str] = (),
    ) -> Span:
        contexts = map(_parse_traceparent, islice(links, _MOST_LINKS))
        span = self._tracer.start_span(
            f"{operation} {self._destination}",
            parent,
            kind,
            attributes,
            [Link(context) for context in contexts if context],
        )
        return Span(span)


class _PerSecond:
    """Limits how often something happens in a second.

    It takes no lock, so threads that ask at the same moment may exceed the limit by a few.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._second = -1
        self._taken = 0

    def take(self) -> bool:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._taken = second, 0
        self._taken += 1
        return self._taken <= self._most


def _sampled(traces: Iterable[str]) -> list[str] | None:
    """Return the traceparents that are sampled; None if there are some, and none is sampled.

    If there is none at all, the process's own sampler decides.
    """
    published = list(filter(None, traces))
    sampled = [traceparent for traceparent in published if traceparent[-1] in _SAMPLED]
    return None if published and not sampled else sampled


def _parent_context(traceparent: str) -> Context:
    """Return the context below a traceparent, which anybody may write; empty if it is malformed."""
    asker = _parse_traceparent(traceparent)
    return set_span_in_context(NonRecordingSpan(asker), Context()) if asker else Context()


def _parse_traceparent(traceparent: str) -> SpanContext | None:
    """Return what a traceparent names. The API's propagator takes five times as long."""
    form = _FORM.fullmatch(traceparent)
    if form is None:
        return None
    flags = TraceFlags(int(form[3], 16))
    named = SpanContext(int(form[1], 16), int(form[2], 16), is_remote=True, trace_flags=flags)
    return named if named.is_valid else None


def _format_traceparent(span: trace.Span) -> str:
    at = span.get_span_context()
    if not at.is_valid:
        return ""
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}"


def _record_error(span: trace.Span, error: BaseException) -> None:
    """Record an error's class, not its text, which may quote a person or a credential."""
    span.set_attribute(_ERROR, type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR))
