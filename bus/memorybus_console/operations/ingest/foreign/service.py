"""Reads JSON from a source's HTTP API; it writes nothing and asks no other server."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, Any, NoReturn, Protocol
from urllib.parse import parse_qsl, urlsplit

from memorybus_console.operations.ingest.foreign.model import ForeignError

TIMEOUT = 60.0
"""Seconds that a service may take before it sends anything."""

LARGEST_ANSWER = 64 << 20
"""The most bytes of an answer (G10)."""

_SCHEMES = ("http", "https")
_CONNECTION_ERRORS = (OSError, http.client.HTTPException, ValueError, RecursionError)


class Fetch(Protocol):
    """Sends requests to a service."""

    @property
    def address_query(self) -> Mapping[str, str]:
        """Return the query of the address, which says what to read there."""
        ...

    def __call__(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path below the address; a request with a body is a POST.

        Raises:
            ForeignError: the service does not answer with one.
        """
        ...


def is_address(text: str) -> bool:
    """Say whether an argument of a command is the address of a service, and not a file."""
    return urlsplit(text).scheme in _SCHEMES


class ForeignService:
    """One service. Use from one thread.

    Args:
        address: the address of its API, to which the paths of requests are appended.
        headers: sent with each request; the key is among them.

    Raises:
        ForeignError: the address contains a user or a password, which would be shown.
    """

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(address)
        if parts.username or parts.password:
            raise ForeignError(
                "the address must not contain a user or password; put the key into the variable "
                "of the source (docs/agents.md)"
            )
        self._address_query = dict(parse_qsl(parts.query))
        self._address = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        json_only = {"Accept": "application/json", "Content-Type": "application/json"}
        self._headers = {**json_only, **headers}
        self._opener = urllib.request.build_opener(_NoRedirects())

    @property
    def address_query(self) -> Mapping[str, str]:
        """Return the query of the address; see `Fetch`."""
        return self._address_query

    def __call__(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request; see `Fetch`."""
        where = f"{self._address}{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(where, data, self._headers)  # noqa: S310  http or https
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                value = json.loads(_read_bounded(answer))
        except urllib.error.HTTPError as error:
            with error:
                raise ForeignError(f"it answered {error.code} {error.reason}", where) from error
        except _CONNECTION_ERRORS as error:
            raise ForeignError(f"it cannot be read: {error}", where) from error
        if not isinstance(value, dict):
            raise ForeignError("it answered no object", where)
        return value


def _read_bounded(answer: IO[bytes]) -> bytes:
    data = answer.read(LARGEST_ANSWER + 1)
    if len(data) > LARGEST_ANSWER:
        raise ValueError(f"more than {LARGEST_ANSWER} bytes")
    return data


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Lets every redirect fail, so that no other server gets the key."""

    def http_error_302(
        self, req: object, fp: object, code: int, msg: str, headers: object
    ) -> NoReturn:
        """Refuse the redirect."""
        raise ForeignError(f"it redirects ({code}); name the address it redirects to")

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302
