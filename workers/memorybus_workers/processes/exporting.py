"""Exports a worker's spans to a collector, as the standard ``OTEL_…`` variables say.

If they name no endpoint, OpenTelemetry is not loaded. A process that has a provider of tracers
already, such as under ``opentelemetry-instrument``, keeps that one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import read_variable
from memorybus.errors import install_command

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_log = logging.getLogger("memorybus")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_OTLP = "opentelemetry.exporter.otlp.proto"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_EXPORTERS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "http/protobuf": (f"{_OTLP}.http.trace_exporter", f"{_OTLP}.http.trace_exporter"),
        "grpc": (f"{_OTLP}.grpc.trace_exporter", f"{_OTLP}.grpc.exporter"),
    }
)
"""For each protocol, the exporter's module and its logger; the extra `otel` installs the first."""

_SERVICE = "memorybus-worker"
_WARNING_INTERVAL_SECONDS = 300.0
"""Seconds between two warnings that spans cannot be sent: a collector may be away for days.

The SDK warns several times for each batch.
"""

_FLUSH_SECONDS = 2.0  # seconds for which the end of a process waits until its last spans are sent


class RareLinesFilter(logging.Filter):
    """Lets a line of a logger pass once in five minutes."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._due = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line passes: no other line has passed for five minutes."""
        now = self._clock.monotonic()
        if now < self._due:
            return False
        self._due = now + _WARNING_INTERVAL_SECONDS
        return True


@contextmanager
def export_spans() -> Iterator[None]:
    """Export this process's spans until the block ends, if its environment names a collector."""
    provider = _set_up_provider() if _is_wanted() else None
    try:
        yield
    finally:
        if provider is not None:
            last = threading.Thread(target=provider.shutdown, name="memorybus-spans", daemon=True)
            last.start()
            last.join(_FLUSH_SECONDS)


def _is_wanted() -> bool:
    off = read_variable("OTEL_SDK_DISABLED").strip().lower() == "true"
    exporter = read_variable("OTEL_TRACES_EXPORTER") or "otlp"
    return bool(_first_set(_ENDPOINTS)) and not off and exporter == "otlp"


def _first_set(names: tuple[str, ...]) -> str:
    return next(filter(None, map(read_variable, names)), "")


def _set_up_provider() -> TracerProvider | None:
    """Give this process a provider of tracers; None if it has one, or cannot."""
    protocol = _first_set(_PROTOCOLS) or "http/protobuf"
    try:
        from opentelemetry import trace

        if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return None
        module, logger = _EXPORTERS[protocol]
        provider = _make_provider(import_module(module).OTLPSpanExporter())
    except KeyError:
        protocols = " or ".join(_EXPORTERS)
        _log.warning("no traces: OTEL_EXPORTER_OTLP_PROTOCOL is %s; use %s", protocol, protocols)
        return None
    except ImportError as error:
        grpc = "pip install opentelemetry-exporter-otlp-proto-grpc"
        command = grpc if protocol == "grpc" else install_command("otel")
        _log.warning("no traces: %s; run: %s", error, command)
        return None
    logging.getLogger(logger).addFilter(RareLinesFilter(SYSTEM))
    trace.set_tracer_provider(provider)
    return provider


def _make_provider(exporter: SpanExporter) -> TracerProvider:
    """Return a provider that sends spans to an exporter; ``OTEL_…`` decides everything else."""
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ours = Resource.create({SERVICE_NAME: _SERVICE})
    resource = ours.merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
