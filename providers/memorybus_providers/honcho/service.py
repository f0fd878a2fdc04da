"""Adds the bus's errors, deadlines and pauses to Honcho's client.

Facts of honcho-ai 2.7.0 that this relies on: it repeats a request after a lost answer unless
``max_retries`` is 0 (one write became two rows); its time-out applies to each read, and not to the
whole request; it gets or makes the workspace before a client's first call; constructing ``Peer`` or
``Session`` directly sends no request; a field that is missing in an answer raises a ``pydantic``
error, which is a ``ValueError``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from honcho import Honcho
from honcho.http.exceptions import HonchoError, RateLimitError
from memorybus.clock import Clock
from memorybus.errors import ProviderError

from memorybus_providers.honcho.options import HonchoOptions
from memorybus_providers.remote import http
from memorybus_providers.remote.http import RateLimit, SharedDeadline


class HonchoService:
    """A server and its account. May be used from several threads."""

    def __init__(self, options: HonchoOptions, key: str, clock: Clock) -> None:
        self._options, self._key = options, key
        self._rate_limit = RateLimit(clock)
        self._deadline = SharedDeadline(clock)
        self._http = httpx.Client(event_hooks={"request": [self._limit_timeouts]})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def client(self, workspace: str) -> Honcho:
        """Return a client of a workspace; this sends nothing."""
        return Honcho(
            api_key=self._key or None,
            base_url=self._options.base_url,
            workspace_id=workspace,
            timeout=self._options.timeout,
            max_retries=0,
            http_client=self._http,
        )

    @contextmanager
    def requests_within(self, deadline: float) -> Iterator[None]:
        """Let the requests of a block share a deadline in seconds, and translate their errors.

        Raises:
            Unavailable, Transient, Permanent: see `remote.http`.
        """
        self._rate_limit.check("Honcho")
        try:
            with self._deadline.within(deadline):
                yield
        except HonchoError as error:
            raise self._to_provider_error(error) from error
        except http.UNREADABLE as error:
            raise http.error_for_unreadable(error, "Honcho") from error

    def _limit_timeouts(self, request: httpx.Request) -> None:
        """Shorten a request's time-outs to the time that is left before the deadline."""
        left = self._deadline.seconds_left()
        if left <= 0:
            raise httpx.PoolTimeout("no time is left before the deadline", request=request)
        wanted = request.extensions["timeout"]
        request.extensions["timeout"] = {
            part: left if seconds is None else min(seconds, left)
            for part, seconds in wanted.items()
        }

    def _to_provider_error(self, error: HonchoError) -> ProviderError:
        reason = http.quote(_error_detail(error.body) or error.message, self._key)
        if not error.status:
            return http.error_for_connection(error, f"Honcho: {reason}")
        if isinstance(error, RateLimitError):
            self._rate_limit.note_pause(error.retry_after)
        return http.error_for_status(error.status, f"Honcho answers {error.status}: {reason}")


def _error_detail(body: Any) -> str:
    """Return the reasons of a refusal, without the rejected input, which the server repeats."""
    detail = body.get("detail") if isinstance(body, dict) else None
    return http.listed_reasons(detail) if isinstance(detail, list) else ""
