"""Sends HTTP requests with JSON bodies, and decides what a failed request means for an event.

A status about the content of the request refuses only that event. A status about the service, its
address or its key delays all events: the fault is in none of them, so nothing is parked, and a
person must act. After all other failures the event is tried again. Clients that services bring use
the same rules, the same pauses (HTTP 429 and its ``Retry-After``) and the same shared deadlines.
"""

import math
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
import urllib3
from memorybus.clock import Clock
from memorybus.errors import Permanent, ProviderError, Transient, Unavailable
from memorybus.msgspec_types import prepared

from memorybus_providers.remote.public import public_pools

T = TypeVar("T")

_MOST_BYTES = 1 << 26
"""The most bytes of an answer that are read (G10)."""

_JSON: Final = {"Content-Type": "application/json"}


NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class HttpService:
    """A server. It follows no redirects, so that the key is sent only to the configured address.

    May be used from several threads.
    """

    name: str
    """The name of the service in errors."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        key: str,
        clock: Clock,
        *,
        name: str = "",
        public_only: bool = False,
    ) -> None:
        """Prepare; the connection is made by the first request.

        Args:
            url: the server's address.
            headers: the headers of each request, with the key.
            key: the key, which is masked in errors.
            name: the name of the service in errors, if its class has none.
            public_only: whether the address may only be one of the public internet.
        """
        if name:
            self.name = name
        self.url = url.rstrip("/")
        self._headers, self._key, self._clock = {**_JSON, **headers}, key, clock
        self._rate_limit = RateLimit(clock)
        make_pools = public_pools if public_only else urllib3.PoolManager
        self._pool = make_pools(retries=False, maxsize=16)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def error_detail(self, answer: bytes) -> str:
        """Return the reason of a refusal, without the rejected input, which it may repeat."""
        return error_detail(answer)

    def error_for_status(self, status: int, detail: str) -> ProviderError:
        """Return the provider's error for a refusal."""
        return error_for_status(status, f"{self.name} answers {status}: {detail}")

    def request_json(
        self, kind: type[T], method: str, path: str, seconds: float, body: Any = None
    ) -> T:
        """Send a request and return the answer as an object of type `kind`; see `request`.

        Raises:
            Transient: also if the answer is not JSON of that type.
        """
        answer = self.request(method, path, seconds, body)
        try:
            return msgspec.json.decode(answer, type=prepared(kind))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Transient(
                f"{self.name} sent an answer that cannot be read: {type(error).__name__}"
            ) from error

    def request(
        self,
        method: str,
        path: str,
        seconds: float,
        body: Any = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> bytes:
        """Send a request and return the answer, which must come within `seconds`.

        Args:
            body: what is sent as JSON; bytes are sent as they are.
            headers: further headers of this request.

        Raises:
            Unavailable, Transient, Permanent: see `error_for_status` and `error_for_connection`.
        """
        self._rate_limit.check(self.name)
        if seconds <= 0:
            raise Transient(f"{self.name}: no time is left before the deadline")
        try:
            answer = self._pool.request(
                method,
                self.url + path,
                body=body if isinstance(body, bytes | None) else msgspec.json.encode(body),
                headers={**self._headers, **headers},
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(total=seconds),
            )
            content = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            reason = quote(str(error), self._key)
            raise error_for_connection(error, f"{self.name}: {reason}") from error
        if not 200 <= answer.status < 300:
            raise self._refusal(answer.status, content, answer.headers.get("Retry-After"))
        return content

    def _refusal(self, status: int, content: bytes, retry_after: str | None) -> ProviderError:
        if status == 429:
            seconds = retry_after_seconds(retry_after, self._clock.now_ms())
            self._rate_limit.note_pause(seconds)
        return self.error_for_status(status, quote(self.error_detail(content), self._key))


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
    sent = not any(isinstance(cause, _NEVER_SENT) for cause in _causes(error))
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
    return listed_reasons(detail) if isinstance(detail, list) else str(detail)


def listed_reasons(detail: Sequence[Any]) -> str:
    """Return the reasons in a list of FastAPI, without the rejected inputs."""
    return "; ".join(str(reason.get("msg")) for reason in detail if isinstance(reason, dict))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes: client libraries wrap the errors of other libraries."""
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        yield one
        one = one.__cause__ or one.__context__


DEFAULT_PAUSE = 5.0
"""Seconds without a call after a 429 that names no time."""

LONGEST_PAUSE = 3_600.0
"""The most seconds of a pause, even if a service asks for more (G10)."""


class RateLimit:
    """Refuses calls until the service may be asked again, so that no request is wasted.

    It raises `Unavailable`, since a rate limit is not the fault of an event. May be used from
    several threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = 0.0

    def check(self, service: str) -> None:
        """Return if a call may be made.

        Raises:
            Unavailable: the pause is not over; the message names the seconds that are left.
        """
        left = self._until - self._clock.monotonic()
        if left > 0:
            raise Unavailable(f"{service} asked for a pause: no call for {left:.1f} s more")

    def note_pause(self, seconds: float | None) -> None:
        """Begin a pause that the service asked for; `seconds` is None if it named no time."""
        wanted = DEFAULT_PAUSE if seconds is None else min(max(seconds, 0.0), LONGEST_PAUSE)
        self._until = max(self._until, self._clock.monotonic() + wanted)


def retry_after_seconds(header: str | None, now_ms: int) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, by a number or a date; None if neither."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now_ms / 1_000)
    except ValueError:
        return None


DEADLINE_SHARE = 0.8
"""The part of a hook's deadline that its requests may take together; the rest is for our code."""


class SharedDeadline:
    """The time that is left before a hook's deadline; each thread has its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limits = threading.local()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let the requests of a block share `seconds`, or what an outer block has left if less."""
        outer = self._until
        self._limits.until = min(outer, self._clock.monotonic() + DEADLINE_SHARE * seconds)
        try:
            yield
        finally:
            self._limits.until = outer

    def seconds_left(self) -> float:
        """Return the seconds that are left: below 0 after the end, infinite outside of a block."""
        return self._until - self._clock.monotonic()

    @property
    def _until(self) -> float:
        return float(getattr(self._limits, "until", math.inf))
