"""Spans of OpenTelemetry around what a bus does: publish, append, apply, recall.

Only names, counts and traceparents enter here, never a text, a person or a session. `otel` sets
all attributes of spans; the rest of the bus only opens spans of a `Tracing` (`spans`).
OpenTelemetry is imported only where the process has a provider of tracers.
"""
