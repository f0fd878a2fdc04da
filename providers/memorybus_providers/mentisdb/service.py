"""Sends requests to MentisDB's REST server, with the bus's errors, deadlines and pauses.

Facts of server 0.9.7 that this relies on: REST listens on port 9472; an append has no idempotency
key and cannot be undone; any request that names a chain makes it, but ``GET /v1/chains`` does not;
bodies of more than 2 MB are refused.
"""

from contextlib import AbstractContextManager
from typing import Any, TypeVar

from memorybus.clock import Clock

from memorybus_providers.mentisdb.options import MentisOptions
from memorybus_providers.remote.deadline import SharedDeadline
from memorybus_providers.remote.http import HttpService

T = TypeVar("T")


class MentisService(HttpService):
    """A server of MentisDB. May be used from several threads."""

    name = "MentisDB"

    def __init__(self, options: MentisOptions, key: str, clock: Clock) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(options.base_url, headers, key, clock)
        self._timeout, self._deadline = options.timeout, SharedDeadline(clock)

    def within(self, deadline: float) -> AbstractContextManager[None]:
        """Let the requests of the block share a deadline, in seconds."""
        return self._deadline.within(deadline)

    def error_detail(self, answer: bytes) -> str:
        """Return the body of a refusal: a line of text, or an object with ``error``."""
        return answer.decode("utf-8", "replace")

    def get(self, path: str, kind: type[T]) -> T:
        """Get a path and return the answer; see `HttpService.request_json`."""
        return self.request_json(kind, "GET", path, self._seconds())

    def post(self, path: str, body: Any, kind: type[T]) -> T:
        """Post a body and return the answer; see `HttpService.request_json`."""
        return self.request_json(kind, "POST", path, self._seconds(), body)

    def _seconds(self) -> float:
        return min(self._timeout, self._deadline.seconds_left())
