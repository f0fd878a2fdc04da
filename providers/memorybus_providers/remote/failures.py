"""What a failed request means for an event; pure.

A status that is about what was sent refuses that event alone. One that is about the service, its
address or its key holds back all of them, for no event is at fault: nothing is parked until a
person has acted. What lies between is tried again.
"""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import msgspec
from memorybus.errors import Permanent, ProviderError, Transient, Unavailable

_REFUSED: Final = frozenset({400, 413, 422})
"""Statuses about what was sent: too large, malformed, not processable."""

_AGAIN: Final = frozenset({408, 409, 423, 425, 500})
"""Statuses that may be of this one request: time-out, conflict, lock, an error of the server."""

_NEVER_SENT: Final = (ConnectionRefusedError, socket.gaierror, ssl.SSLError)
"""Causes for which no byte of a request has reached its service."""

_QUOTED = 200
"""Characters of a service's words that an error shows (G10)."""


def of_status(status: int, message: str) -> ProviderError:
    """Return what an HTTP status other than 2xx leads to.

    400, 413 and 422 are `Permanent`. 408, 409, 423, 425 and 500 are `Transient`. All others are
    `Unavailable`: the account (401, 402, 403, 429), the address (404, 405, redirects), the service
    (502, 503, 504).
    """
    if status in _REFUSED:
        return Permanent(message)
    return Transient(message) if status in _AGAIN else Unavailable(message)


def of_connection(error: BaseException, message: str) -> Transient:
    """Return what a request without an answer leads to.

    `Unavailable` if nothing was sent (refused, no such host, no trust); else `Transient`: a time
    ran out, a connection broke, half an answer came. The service may hold what was sent then.
    """
    sent = not any(isinstance(one, _NEVER_SENT) for one in _causes(error))
    return Transient(message) if sent else Unavailable(message)


def quoted(text: str, *secrets: str) -> str:
    """Return a service's words as one bounded line in which no secret stands.

    Some services repeat the key in what they complain of.
    """
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return " ".join(text.split())[:_QUOTED]


def complaint(body: bytes | str) -> str:
    """Return what a refusal complains of, without the input that it repeats (FastAPI's ``detail``).

    "" if the body says nothing of the kind.
    """
    try:
        detail = msgspec.json.decode(body).get("detail", "")
    except (msgspec.MsgspecError, AttributeError, UnicodeError):
        return ""
    if isinstance(detail, list):
        return "; ".join(str(one.get("msg")) for one in detail if isinstance(one, dict))
    return str(detail)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it: client libraries wrap theirs."""
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        yield one
        one = one.__cause__ or one.__context__
