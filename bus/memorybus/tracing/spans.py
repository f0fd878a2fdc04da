"""The seam between the bus and OpenTelemetry: all code of the bus opens its spans here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, TypeAlias

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.forking import import_guard

if TYPE_CHECKING:
    from memorybus.tracing.otel import Span, Spans

TRACING_API = "opentelemetry.trace"
"""Whoever configured a provider of tracers has imported this module; others need not load it."""

MaybeSpan: TypeAlias = "AbstractContextManager[Span | None]"
"""A span around a block of code; its block gets None if nothing records it."""

NO_SPAN: Final[MaybeSpan] = nullcontext()
_LOOK_EVERY: Final = 0.1  # seconds between two searches for a provider: each one takes microseconds


class Tracing:
    """Makes spans with the process's provider of tracers, if any, now or later. Thread-safe."""

    def __init__(self, destination: str, clock: Clock = SYSTEM) -> None:
        self._destination = destination
        self._clock = clock
        self._make: Callable[[str, Clock], Spans | None] | None = None
        self._found: Spans | None = None
        self._look_at = float("-inf")

    def _spans(self) -> Spans | None:
        if self._found is None and TRACING_API in sys.modules:
            now = self._clock.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_EVERY
                make = self._make or self._load()
                self._found = make(self._destination, self._clock)
        return self._found

    def _load(self) -> Callable[[str, Clock], Spans | None]:
        """Load what makes spans, once: the process may go on without a provider of tracers."""
        with import_guard():  # a fork in the middle of an import leaves the child half a module
            from memorybus.tracing.otel import make_spans
        self._make = make_spans
        return make_spans

    def current(self) -> str:
        spans = self._spans()
        return spans.current() if spans else ""

    def publish(self, event_id: str, kind: str) -> MaybeSpan:
        spans = self._spans()
        return (spans and spans.publish(event_id, kind)) or NO_SPAN

    def append(self, count: int, traces: Iterable[str]) -> MaybeSpan:
        spans = self._spans()
        return (spans and spans.append(count, traces)) or NO_SPAN

    def apply(self, provider: str, partition: int, count: int, traces: Iterable[str]) -> MaybeSpan:
        spans = self._spans()
        return (spans and spans.apply(provider, partition, count, traces)) or NO_SPAN

    def recall(self) -> MaybeSpan:
        spans = self._spans()
        return (spans and spans.recall()) or NO_SPAN

    def answer(self, provider: str, trace: str) -> MaybeSpan:
        """Return a span in which a provider answers; `trace` is the asker's traceparent."""
        spans = self._spans()
        return (spans and spans.answer(provider, trace)) or NO_SPAN

    def failed(self, error: BaseException) -> None:
        """Say that something failed in the span that this thread works in, which goes on."""
        if spans := self._spans():
            spans.failed(error)
