"""A fake of an OTLP collector: a real HTTP server that decodes what exporters post to it.

Written from the specification of OTLP/HTTP 1.9 (``POST /v1/traces``, binary protobuf, gzip).
"""

import gzip
from http.server import BaseHTTPRequestHandler

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from helpers.services.fake_http import FakeHandler, FakeServer


class Received(msgspec.Struct, frozen=True):
    """A span that arrived.

    Attributes:
        service: the ``service.name`` of its process.
        name: its name.
        trace: the 32 hex digits of its trace.
        span: the 16 of its own.
        parent: those of its parent, "" without one.
        links: the (trace, span) that it is linked to.
        told: its attributes.
        kind: its kind, by the protocol's number.
        failed: whether its status is an error.
        body: all of it, as it came.
    """

    service: str
    name: str
    trace: str
    span: str
    parent: str
    links: tuple[tuple[str, str], ...]
    told: dict[str, str | int]
    kind: int
    failed: bool
    body: bytes


class FakeCollector(FakeServer):
    """Keeps what is posted.

    Attributes:
        spans: all that arrived.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler] | None = None) -> None:
        super().__init__(handler or _Handler)
        self.spans: list[Received] = []

    def of(self, operation: str) -> list[Received]:
        return [span for span in self.spans if span.name.split(" ")[0] == operation]


class _Handler(FakeHandler):
    server: FakeCollector

    def do_POST(self) -> None:
        body = self.body()
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            self.tell(404, {})
            return
        packed = self.headers.get("Content-Encoding") == "gzip"
        request = ExportTraceServiceRequest.FromString(gzip.decompress(body) if packed else body)
        for resource in request.resource_spans:
            service = str(_told(resource.resource.attributes).get("service.name", ""))
            for scope in resource.scope_spans:
                self.server.spans += [_received(service, span) for span in scope.spans]
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def _told(attributes: "list[KeyValue]") -> dict[str, str | int]:
    return {
        one.key: one.value.int_value
        if one.value.WhichOneof("value") == "int_value"
        else one.value.string_value
        for one in attributes
    }


def _received(service: str, span: Span) -> Received:
    return Received(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        _told(list(span.attributes)),
        span.kind,
        span.status.code == 2,
        span.SerializeToString(),
    )
