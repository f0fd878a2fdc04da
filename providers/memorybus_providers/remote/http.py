"""A service by HTTP, JSON in and out, where it has no client of its own worth having."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import urllib3
from memorybus.clock import Clock
from memorybus.errors import ProviderError, Transient

from memorybus_providers.remote import failures, rate_limit

T = TypeVar("T")

_MOST_BYTES = 1 << 26
"""Of an answer (G10)."""

_JSON: Final = {"Content-Type": "application/json"}


class HttpService:
    """A server. It follows no redirect: a key goes where the settings say, nowhere else.

    May be used from several threads.
    """

    name: str
    """The service's, for errors."""

    def __init__(self, url: str, headers: Mapping[str, str], key: str, clock: Clock) -> None:
        """Connect to nothing yet.

        Args:
            url: where it is.
            headers: sent with each request; they hold the key.
            key: what errors must not show.
            clock: time.
        """
        self.url = url.rstrip("/")
        self._headers, self._key, self._clock = {**_JSON, **headers}, key, clock
        self._truce = rate_limit.Truce(clock)
        self._pool = urllib3.PoolManager(retries=False, maxsize=16)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def complaint(self, said: bytes) -> str:
        """Return what a refusal complains of, without the input that it may repeat."""
        return failures.complaint(said)

    def refusal(self, status: int, complaint: str) -> ProviderError:
        """Return what a refusal means."""
        return failures.of_status(status, f"{self.name} answers {status}: {complaint}")

    def read(self, kind: type[T], method: str, path: str, seconds: float, body: Any = None) -> T:
        """Return what is answered, as a kind; see `ask`.

        Raises:
            Transient: besides, the answer is none of that kind.
        """
        answered = self.ask(method, path, seconds, body)
        try:
            return msgspec.json.decode(answered, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Transient(f"{self.name}'s answer is none: {type(error).__name__}") from error

    def ask(self, method: str, path: str, seconds: float, body: Any = None) -> bytes:
        """Return the answer to a request within so many seconds.

        Raises:
            Unavailable, Transient, Permanent: see `failures`.
        """
        self._truce.check(self.name)
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
            said = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            told = failures.quoted(str(error), self._key)
            raise failures.of_connection(error, f"{self.name}: {told}") from error
        if not 200 <= answer.status < 300:
            raise self._refused(answer.status, said, answer.headers.get("Retry-After"))
        return said

    def _refused(self, status: int, said: bytes, retry_after: str | None) -> ProviderError:
        if status == 429:
            self._truce.asked(rate_limit.seconds_of(retry_after, self._clock.now_ms()))
        return self.refusal(status, failures.quoted(self.complaint(said), self._key))
