"""Sends HTTP requests with JSON bodies, for services without a useful client library."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import urllib3
from memorybus.clock import Clock
from memorybus.errors import ProviderError, Transient
from memorybus.msgspec_types import prepared

from memorybus_providers.remote import failures, rate_limit

T = TypeVar("T")

_MOST_BYTES = 1 << 26
"""The most bytes of an answer that are read (G10)."""

_JSON: Final = {"Content-Type": "application/json"}


class HttpService:
    """A server. It follows no redirects, so that the key is sent only to the configured address.

    May be used from several threads.
    """

    name: str
    """The name of the service in errors."""

    def __init__(self, url: str, headers: Mapping[str, str], key: str, clock: Clock) -> None:
        """Prepare; the connection is made by the first request.

        Args:
            url: the server's address.
            headers: the headers of each request, with the key.
            key: the key, which is masked in errors.
        """
        self.url = url.rstrip("/")
        self._headers, self._key, self._clock = {**_JSON, **headers}, key, clock
        self._rate_limit = rate_limit.RateLimit(clock)
        self._pool = urllib3.PoolManager(retries=False, maxsize=16)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def error_detail(self, answer: bytes) -> str:
        """Return the reason of a refusal, without the rejected input, which it may repeat."""
        return failures.error_detail(answer)

    def error_for_status(self, status: int, detail: str) -> ProviderError:
        """Return the provider's error for a refusal."""
        return failures.error_for_status(status, f"{self.name} answers {status}: {detail}")

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

    def request(self, method: str, path: str, seconds: float, body: Any = None) -> bytes:
        """Send a request and return the answer, which must come within `seconds`.

        Raises:
            Unavailable, Transient, Permanent: see `failures`.
        """
        self._rate_limit.check(self.name)
        if seconds <= 0:
            raise Transient(f"{self.name}: no time is left before the deadline")
        try:
            answer = self._pool.request(
                method,
                self.url + path,
                body=None if body is None else msgspec.json.encode(body),
                headers=self._headers,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(total=seconds),
            )
            content = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            reason = failures.quote(str(error), self._key)
            raise failures.error_for_connection(error, f"{self.name}: {reason}") from error
        if not 200 <= answer.status < 300:
            raise self._refusal(answer.status, content, answer.headers.get("Retry-After"))
        return content

    def _refusal(self, status: int, content: bytes, retry_after: str | None) -> ProviderError:
        if status == 429:
            seconds = rate_limit.retry_after_seconds(retry_after, self._clock.now_ms())
            self._rate_limit.note_pause(seconds)
        return self.error_for_status(status, failures.quote(self.error_detail(content), self._key))
