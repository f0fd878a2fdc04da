"""Spans of OpenTelemetry around what a bus does: publish, append, apply, recall.

Only names, counts and traceparents enter here, never a text, a person or a session. All that is
told of a span stands in `otel`; the rest of the bus opens spans of a `Tracing` (`spans`) and knows
no more. OpenTelemetry is imported only where the process has a provider of tracers.
"""
