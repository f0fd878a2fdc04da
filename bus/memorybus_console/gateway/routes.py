"""The routes of the gateway, and the OpenAPI document that describes them.

A route is declared once: its path, its right, and the method of `Gateway` whose types are those of
its request and its answer.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Final, Literal, get_args, get_type_hints

import msgspec

from memorybus_console.gateway.gateway import ApiCaller, Gateway
from memorybus_console.gateway.keys import Right
from memorybus_console.gateway.messages import (
    ApiRequest,
    ExportEvents,
    TailEvents,
)
from memorybus_console.gateway.problems import ProblemDetails

Method = Literal["GET", "POST", "PUT", "DELETE"]

PREFIX: Final = "/v1"
_REFERENCE: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Route:
    """One operation.

    Attributes:
        method: the HTTP method.
        path: its path below `PREFIX`.
        right: what the caller's key has to allow.
        run: the method of `Gateway`.
        status: the status of a success.
    """

    method: Method
    path: str
    right: Right
    run: Callable[[Gateway, ApiCaller, Any], Any]
    status: int = 200

    @property
    def name(self) -> str:
        """Its name in the document."""
        return self.run.__name__

    @cached_property
    def request(self) -> type[ApiRequest]:
        """The type of its request."""
        return get_type_hints(self.run)["request"]  # type: ignore[no-any-return]

    @cached_property
    def answers(self) -> tuple[Any, ...]:
        """The types of its answer: one, several, or none if there is no body."""
        answer = get_type_hints(self.run)["return"]
        if answer is type(None):
            return ()
        return get_args(answer) if isinstance(answer, UnionType) else (answer,)

    @property
    def in_path(self) -> tuple[str, ...]:
        """The fields that its path names."""
        return tuple(_PARAMETER.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Whether the other fields are in the body, and not in the query."""
        return self.method in ("POST", "PUT")


@dataclass(frozen=True)
class StreamRoute:
    """An operation whose answer is a stream; the application itself carries it out.

    Attributes:
        path: its path below `PREFIX`.
        right: what the caller's key has to allow.
        name: its name in the document.
        request: the type of its request, in the query.
        media: the type of the stream.
    """

    path: str
    right: Right
    name: str
    request: type[ApiRequest]
    media: str


ROUTES: Final = (
    Route("POST", "/events", "publish", Gateway.publish, 202),
    Route("POST", "/sessions", "publish", Gateway.start_session),
    Route("POST", "/sessions/{session}/branch", "publish", Gateway.branch),
    Route("POST", "/sessions/{session}/switch", "publish", Gateway.switch),
    Route("POST", "/sessions/{session}/compress", "publish", Gateway.compress),
    Route("POST", "/sessions/{session}/undo", "publish", Gateway.undo),
    Route("POST", "/sessions/{session}/transcript", "publish", Gateway.read_transcript, 202),
    Route("POST", "/sessions/{session}/prefetch", "recall", Gateway.prefetch),
    Route("POST", "/sessions/{session}/queue-prefetch", "recall", Gateway.queue_prefetch, 202),
    Route("GET", "/sessions/{session}/system-prompt", "recall", Gateway.system_prompt),
    Route("POST", "/sessions/{session}/contributions", "publish", Gateway.contribute),
    Route("POST", "/sessions/{session}/tools/{tool}", "tools", Gateway.call_tool),
    Route("GET", "/tools", "tools", Gateway.tools),
    Route("POST", "/recall", "recall", Gateway.recall),
    Route("GET", "/memories", "recall", Gateway.memories),
    Route("PUT", "/memories/{event}", "publish", Gateway.correct_memory),
    Route("DELETE", "/memories/{event}", "publish", Gateway.delete_memory),
    Route("POST", "/forget", "operate", Gateway.forget),
    Route("GET", "/insights", "operate", Gateway.insights),
    Route("GET", "/health", "metrics", Gateway.health),
    Route("GET", "/acts", "operate", Gateway.acts),
    Route("POST", "/acts/{act}", "operate", Gateway.act),
)

EXPORT: Final = StreamRoute("/export", "recall", "export", ExportEvents, "application/x-ndjson")
TAIL: Final = StreamRoute("/events/tail", "recall", "tail", TailEvents, "text/event-stream")


def openapi_document(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all routes; pure.

    Args:
        version: the release of memorybus.
    """
    streams = (EXPORT, TAIL)
    kinds: list[Any] = [ProblemDetails, *(each.request for each in (*ROUTES, *streams))]
    kinds += [kind for route in ROUTES for kind in route.answers]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    schema_by_kind = dict(zip(map(id, kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        answers = [schema_by_kind[id(kind)] for kind in route.answers]
        operation = _describe_route(route, answers, components)
        paths.setdefault(f"{PREFIX}{route.path}", {})[route.method.lower()] = operation
    for stream in streams:
        paths[f"{PREFIX}{stream.path}"] = {"get": _describe_stream(stream, components)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "memorybus", "version": version},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {name: components[name] for name in sorted(components)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe_route(route: Route, answers: list[Any], components: dict[str, Any]) -> dict[str, Any]:
    fields = components[route.request.__name__]
    operation = _operation(route.name, route.right, route.request)
    operation["parameters"] = _parameters(route.in_path, "path", fields)
    rest = [name for name in fields["properties"] if name not in route.in_path]
    if route.has_body:
        operation["requestBody"] = _body(fields, rest)
    else:
        operation["parameters"] += _parameters(rest, "query", fields)
    success: dict[str, Any] = {"description": "done"}
    if answers:
        schema = answers[0] if len(answers) == 1 else {"anyOf": answers}
        success["content"] = {"application/json": {"schema": schema}}
    operation["responses"] = {str(route.status): success} | _failure()
    return operation


def _describe_stream(stream: StreamRoute, components: dict[str, Any]) -> dict[str, Any]:
    fields = components[stream.request.__name__]
    operation = _operation(stream.name, stream.right, stream.request)
    operation["parameters"] = _parameters(fields["properties"], "query", fields)
    content = {stream.media: {"schema": {"type": "string"}}}
    operation["responses"] = {"200": {"description": "done", "content": content}} | _failure()
    return operation


def _operation(name: str, right: Right, request: type[ApiRequest]) -> dict[str, Any]:
    summary = (request.__doc__ or "").partition("\n")[0]
    return {"operationId": name, "summary": summary, "description": f"It needs the right {right}."}


def _parameters(names: Iterable[str], place: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
    required = fields.get("required", ())
    return [
        {
            "name": name,
            "in": place,
            "required": place == "path" or name in required,
            "schema": fields["properties"][name],
        }
        for name in names
    ]


def _body(fields: dict[str, Any], names: list[str]) -> dict[str, Any]:
    required = [name for name in names if name in fields.get("required", ())]
    schema = {
        "type": "object",
        "properties": {name: fields["properties"][name] for name in names},
        "required": required,
        "additionalProperties": False,
    }
    content = {"application/json": {"schema": schema}}
    return {"required": bool(required), "content": content}


def _failure() -> dict[str, Any]:
    schema = {"$ref": _REFERENCE.format(name=ProblemDetails.__name__)}
    content = {"application/problem+json": {"schema": schema}}
    return {"default": {"description": "a problem (RFC 9457)", "content": content}}
