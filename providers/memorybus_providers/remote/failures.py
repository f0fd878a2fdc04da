"""Decides what a failed request means for an event; pure.

A status about the content of the request refuses only that event. A status about the service, its
address or its key delays all events: the fault is in none of them, so nothing is parked, and a
person must act. After all other failures the event is tried again.
"""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import msgspec
from memorybus.errors import Permanent, ProviderError, Transient, Unavailable

_REFUSED_STATUSES: Final = frozenset({400, 413, 422})
"""Statuses about the content of the request: too large, malformed, not processable."""

_RETRYABLE_STATUSES: Final = frozenset({408, 409, 423, 425, 500})
"""Statuses that may be about one request: time-out, conflict, lock, an error of the server."""

_NEVER_SENT: Final = (ConnectionRefusedError, socket.gaierror, ssl.SSLError)
"""Errors after which it is certain that no byte of the request has reached the service."""

UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""Errors that a client library raises when it cannot read an answer."""

_MAX_QUOTED_CHARS = 200
"""The most characters of a service's words that an error shows (G10)."""


def error_for_status(status: int, message: str) -> ProviderError:
    """Return the provider's error for an HTTP status other than 2xx.

    400, 413 and 422 are `Permanent`. 408, 409, 423, 425 and 500 are `Transient`. All others are
    `Unavailable`: the account (401, 402, 403, 429), the address (404, 405, redirects), the service
    (502, 503, 504).
    """
    if status in _REFUSED_STATUSES:
        return Permanent(message)
    return Transient(message) if status in _RETRYABLE_STATUSES else Unavailable(message)


def error_for_connection(error: BaseException, message: str) -> Transient:
    """Return the provider's error for a request without an answer.

    It is `Unavailable` if nothing was sent (refused, no such host, no trust). Else it is
    `Transient`: the time ran out, the connection broke, or only a part of the answer came, and the
    service may have stored what was sent.
    """
    sent = not any(isinstance(one, _NEVER_SENT) for one in _causes(error))
    return Transient(message) if sent else Unavailable(message)


def error_for_unreadable(error: BaseException, service: str) -> Transient:
    """Return the provider's error for an answer that the service's client cannot read."""
    return Transient(
        f"{service} sent an answer that its client cannot read: {type(error).__name__}"
    )


def quote(text: str, *secrets: str) -> str:
    """Return a service's words as one bounded line, with secrets masked.

    Some services repeat the key in their error messages.
    """
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return " ".join(text.split())[:_MAX_QUOTED_CHARS]


def error_detail(body: bytes | str) -> str:
    """Return FastAPI's ``detail`` of a refusal, without the rejected input, which it repeats.

    If the body has no ``detail``, return "".
    """
    try:
        detail = msgspec.json.decode(body).get("detail", "")
    except (msgspec.MsgspecError, AttributeError, UnicodeError):
        return ""
    if isinstance(detail, list):
        return "; ".join(str(one.get("msg")) for one in detail if isinstance(one, dict))
    return str(detail)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes: client libraries wrap the errors of other libraries."""
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        yield one
        one = one.__cause__ or one.__context__
