"""Honcho's client behind the bus's errors, deadlines and pauses.

Facts of honcho-ai 2.7.0 that this stands on: it sends a request again after a lost answer unless
``max_retries`` is 0 (one write became two rows); a time-out of its own holds for each read; the
workspace is got or made before a client's first call; ``Peer`` and ``Session`` made by hand ask
nothing; what an answer lacks is a ``pydantic`` error, a ``ValueError``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from honcho import Honcho
from honcho.http.exceptions import HonchoError, RateLimitError
from memorybus.clock import Clock
from memorybus.errors import ProviderError, Transient

from memorybus_providers.honcho.options import Options
from memorybus_providers.remote import failures
from memorybus_providers.remote.deadline import SharedDeadline
from memorybus_providers.remote.rate_limit import RateLimit


class Service:
    """A server and its account. May be used from several threads."""

    def __init__(self, options: Options, key: str, clock: Clock) -> None:
        """Connect to nothing yet."""
        self._options, self._key = options, key
        self._rate_limit = RateLimit(clock)
        self._deadline = SharedDeadline(clock)
        self._http = httpx.Client(event_hooks={"request": [self._limit]})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def client(self, workspace: str) -> Honcho:
        """Return a client of a workspace; it asks nothing yet."""
        return Honcho(
            api_key=self._key or None,
            base_url=self._options.base_url,
            workspace_id=workspace,
            timeout=self._options.timeout,
            max_retries=0,
            http_client=self._http,
        )

    @contextmanager
    def asking(self, deadline: float) -> Iterator[None]:
        """Translate what fails within the block, whose requests share a deadline in seconds.

        Raises:
            Unavailable, Transient, Permanent: see `remote.failures`.
        """
        self._rate_limit.check("Honcho")
        try:
            with self._deadline.within(deadline):
                yield
        except HonchoError as error:
            raise self._meaning(error) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            kind = type(error).__name__
            raise Transient(f"Honcho's answer is none that its client reads: {kind}") from error

    def _limit(self, request: httpx.Request) -> None:
        """Shorten a request's time-outs to what is left of the deadline."""
        left = self._deadline.seconds_left()
        if left <= 0:
            raise httpx.PoolTimeout("no time is left before the deadline", request=request)
        wanted = request.extensions["timeout"]
        request.extensions["timeout"] = {
            part: left if seconds is None else min(seconds, left)
            for part, seconds in wanted.items()
        }

    def _meaning(self, error: HonchoError) -> ProviderError:
        said = failures.quote(_said(error.body) or error.message, self._key)
        if not error.status:
            return failures.error_for_connection(error, f"Honcho: {said}")
        if isinstance(error, RateLimitError):
            self._rate_limit.note_pause(error.retry_after)
        return failures.error_for_status(error.status, f"Honcho answers {error.status}: {said}")


def _said(body: Any) -> str:
    """Return what a refusal complains of, without the input that it repeats."""
    detail = body.get("detail") if isinstance(body, dict) else None
    if not isinstance(detail, list):
        return ""
    return "; ".join(str(one.get("msg")) for one in detail if isinstance(one, dict))
