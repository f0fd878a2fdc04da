"""MentisDB's REST server behind the bus's errors, deadlines and pauses.

Facts of server 0.9.7 that this stands on: REST listens on 9472; an append has no key against
repetition and cannot be undone; any request that names a chain makes it, but ``GET /v1/chains``
makes none; bodies of more than 2 MB are refused.
"""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import urllib3
from memorybus.clock import Clock
from memorybus.errors import Transient

from memorybus_providers.mentisdb.options import Options
from memorybus_providers.remote import failures
from memorybus_providers.remote.truce import Truce, seconds_of

T = TypeVar("T")

_MOST_BYTES = 1 << 26
"""Of an answer (G10)."""

_SHARE = 0.8
"""Of a call's deadline that its requests may take together: the hook itself says the end."""


class Service:
    """A server. May be used from several threads."""

    def __init__(self, options: Options, key: str, clock: Clock) -> None:
        """Connect to nothing yet."""
        self.url = options.base_url.rstrip("/")
        self._timeout, self._key, self._clock = options.timeout, key, clock
        self._truce = Truce(clock)
        self._limits = threading.local()
        self._pool = urllib3.PoolManager(retries=False, maxsize=16)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    @contextmanager
    def within(self, deadline: float) -> Iterator[None]:
        """Let the requests of the block share a deadline, in seconds."""
        outer = getattr(self._limits, "until", math.inf)
        self._limits.until = min(outer, self._clock.monotonic() + _SHARE * deadline)
        try:
            yield
        finally:
            self._limits.until = outer

    def get(self, path: str, kind: type[T]) -> T:
        """Ask for something; see `post`."""
        return self._asked("GET", path, None, kind)

    def post(self, path: str, body: Any, kind: type[T]) -> T:
        """Send a body and return what is answered.

        Raises:
            Unavailable, Transient, Permanent: see `remote.failures`.
        """
        return self._asked("POST", path, msgspec.json.encode(body), kind)

    def _asked(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        self._truce.check("MentisDB")
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        status, retry_after, answered = self._sent(method, path, body, headers)
        if not 200 <= status < 300:
            if status == 429:
                self._truce.asked(seconds_of(retry_after, self._clock.now_ms()))
            said = failures.quoted(answered.decode("utf-8", "replace"), self._key)
            raise failures.of_status(status, f"MentisDB answers {status}: {said}")
        try:
            return msgspec.json.decode(answered, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Transient(f"MentisDB's answer to {path} is none: {error}") from error

    def _sent(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str | None, bytes]:
        left = getattr(self._limits, "until", math.inf) - self._clock.monotonic()
        if left <= 0:
            raise Transient("no time is left before the deadline")
        try:
            answer = self._pool.request(
                method,
                self.url + path,
                body=body,
                headers=headers,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(total=min(self._timeout, left)),
            )
            read = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            said = failures.quoted(str(error), self._key)
            raise failures.of_connection(error, f"MentisDB: {said}") from error
        return answer.status, answer.headers.get("Retry-After"), read
