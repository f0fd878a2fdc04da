"""Waits, within bounds, until the lanes' owners have carried an operator's requests out."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.dead_letters.queue import DeadLetters, LaneId
from memorybus.dead_letters.requests import LetterRequest

POLL_SECONDS = 0.2


class WaitResult(msgspec.Struct, frozen=True):
    """How waiting ended.

    Attributes:
        left: how many requests are not carried out.
        unowned: whether waiting ended because none of their lanes had an owner for too long.
    """

    left: int
    unowned: bool


def await_requests(
    desk: DeadLetters,
    asked: Mapping[str, Sequence[LetterRequest]],
    clock: Clock,
    *,
    timeout: float,
    ownerless: float,
    progress: Callable[[int], None],
) -> WaitResult:
    """Wait until requests are carried out, for `timeout` seconds at most.

    Args:
        desk: the dead letters, to which the requests were sent.
        asked: the requests by provider.
        clock: time.
        timeout: seconds.
        ownerless: seconds without any owner of these lanes after which waiting ends.
        progress: receives how many dead letters the lanes have.

    Raises:
        LogUnavailable: Redis is away; the requests stay.
    """
    begun = owned_at = clock.monotonic()
    while left := _pending_lanes(desk, asked):
        now = clock.monotonic()
        progress(desk.count(lanes_of_requests(asked)))
        if desk.count_owned(left):
            owned_at = now
        unowned = now - owned_at > ownerless
        if unowned or now - begun > timeout:
            return WaitResult(len(left), unowned)
        clock.sleep(POLL_SECONDS)
    progress(desk.count(lanes_of_requests(asked)))
    return WaitResult(0, unowned=False)


def _pending_lanes(desk: DeadLetters, asked: Mapping[str, Sequence[LetterRequest]]) -> list[LaneId]:
    """Return the lane of each request that is not carried out."""
    return [
        (provider, request.partition)
        for provider, requests in asked.items()
        for request in _pending_requests(desk, provider, requests)
    ]


def _pending_requests(
    desk: DeadLetters, provider: str, requests: Sequence[LetterRequest]
) -> list[LetterRequest]:
    fields = desk.waiting_requests(provider)
    return [request for request in requests if request.field in fields]


def lanes_of_requests(asked: Mapping[str, Sequence[LetterRequest]]) -> set[LaneId]:
    """Return the lanes to which requests are sent."""
    return {(name, request.partition) for name, requests in asked.items() for request in requests}
