"""The seam between the bus and OpenTelemetry: all code of the bus opens its spans here.

Without a configured provider of tracers, and so in every process without OpenTelemetry, a span is
one object that does nothing and never reads what it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.forking import import_guard
from memorybus.tracing.span import NO_SPAN, Span

if TYPE_CHECKING:
    from memorybus.tracing.otel import OtelSpans

_API = "opentelemetry.trace"
"""Whoever configured a provider of tracers has imported this module; others need not load it."""

_LOOK_EVERY: Final = 0.1
"""Seconds between two searches for a provider: each one takes microseconds."""


class Tracing:
    """Makes spans with the provider of tracers that this process has, if any, now or later.

    A provider that is configured later is noticed within `_LOOK_EVERY`.

    Safe to call from any thread.

    Args:
        destination: what is published to and recalled from: the log's namespace.
        clock: time, for the limit of spans in a second.
    """

    def __init__(self, destination: str, clock: Clock = SYSTEM) -> None:
        """Look for no provider yet."""
        self._destination = destination
        self._clock = clock
        self._make: Callable[[str, Clock], OtelSpans | None] | None = None
        self._found: OtelSpans | None = None
        self._look_at = float("-inf")

    def _spans(self) -> OtelSpans | None:
        if self._found is None and _API in sys.modules:
            now = self._clock.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_EVERY
                make = self._make or self._load()
                self._found = make(self._destination, self._clock)
        return self._found

    def _load(self) -> Callable[[str, Clock], OtelSpans | None]:
        """Load what makes spans, once: the process may go on without a provider of tracers."""
        with import_guard():  # a fork in the middle of an import leaves the child half a module
            from memorybus.tracing.otel import make_spans
        self._make = make_spans
        return make_spans

    def current(self) -> str:
        """Return the traceparent of the span that this thread works in, "" without one."""
        spans = self._spans()
        return spans.current() if spans else ""

    def publish(self, event_id: str, kind: str) -> Span:
        """Return a span in which an event is published.

        Args:
            event_id: the event's id.
            kind: the name of its type.
        """
        spans = self._spans()
        return spans.publish(event_id, kind) if spans else NO_SPAN

    def append(self, count: int, traces: Iterable[str]) -> Span:
        """Return a span in which events are sent to the log.

        Args:
            count: how many events.
            traces: what their envelopes say of their publishers' spans; read only if it matters.
        """
        spans = self._spans()
        return spans.append(count, traces) if spans else NO_SPAN

    def apply(self, provider: str, partition: int, count: int, traces: Iterable[str]) -> Span:
        """Return a span in which events of a partition are applied.

        Args:
            provider: to which.
            partition: the events'.
            count: how many.
            traces: as for `append`.
        """
        spans = self._spans()
        return spans.apply(provider, partition, count, traces) if spans else NO_SPAN

    def recall(self) -> Span:
        """Return a span in which an agent asks what is remembered."""
        spans = self._spans()
        return spans.recall() if spans else NO_SPAN

    def answer(self, provider: str, trace: str) -> Span:
        """Return a span in which a provider answers; `trace` is the asker's traceparent."""
        spans = self._spans()
        return spans.answer(provider, trace) if spans else NO_SPAN

    def failed(self, error: BaseException) -> None:
        """Say that something failed in the span that this thread works in, which goes on."""
        if spans := self._spans():
            spans.failed(error)
