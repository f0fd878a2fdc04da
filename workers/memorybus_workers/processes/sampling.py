"""Makes a worker's own provider of tracers, and decides which of its spans are kept.

This is the only module that imports OpenTelemetry's SDK.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState, get_current_span
from opentelemetry.util.types import Attributes

_SERVICE = "memorybus-worker"


def tracer_provider_for(exporter: SpanExporter) -> TracerProvider:
    """Return a provider that sends spans to an exporter; ``OTEL_…`` decides everything else."""
    ours = Resource.create({SERVICE_NAME: _SERVICE})
    provider = TracerProvider(
        sampler=by_links(TracerProvider(shutdown_on_exit=False).sampler),
        resource=ours.merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def by_links(configured: Sampler) -> Sampler:
    """Return the sampler that treats sampled links as it treats a sampled parent.

    A batch has no parent, but it has publishers. If one of them is sampled and the configured
    sampler follows parents, the span of the batch is sampled, too. Any other sampler decides alone.
    """
    return ByLinks(configured) if isinstance(configured, ParentBased) else configured


class ByLinks(Sampler):
    """Keeps a span without a parent if it is linked to one that is kept; see `by_links`."""

    def __init__(self, configured: Sampler) -> None:
        """Leave all other decisions to the configured sampler."""
        self._configured = configured

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide; see the class."""
        parent = get_current_span(parent_context).get_span_context()
        linked = any(link.context.trace_flags.sampled for link in links or ())
        sampler = ALWAYS_ON if linked and not parent.is_valid else self._configured
        return sampler.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )

    def get_description(self) -> str:
        """Return its name with that of the configured sampler."""
        return f"ByLinks{{{self._configured.get_description()}}}"
