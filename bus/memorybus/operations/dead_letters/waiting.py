"""Wait, within bounds, until the lanes' owners have done what an operator asked."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.dead_letters.queue import DeadLetters, Lane
from memorybus.dead_letters.requests import LetterRequest

POLL = 0.2
"""Seconds between two looks."""


class Waited(msgspec.Struct, frozen=True):
    """How waiting ended.

    Attributes:
        left: requests that are not carried out.
        unowned: whether none of their lanes had an owner for as long as one may be without.
    """

    left: int
    unowned: bool


def wait(
    desk: DeadLetters,
    asked: Mapping[str, Sequence[LetterRequest]],
    clock: Clock,
    *,
    timeout: float,
    ownerless: float,
    progress: Callable[[int], None],
) -> Waited:
    """Wait until requests are carried out, for `timeout` seconds at most.

    Args:
        desk: where they were written.
        asked: the requests by provider.
        clock: time.
        timeout: seconds.
        ownerless: seconds after which lanes that nobody owned all the time are given up.
        progress: told how many dead letters the lanes have.

    Raises:
        LogUnavailable: Redis is away; what was asked stays.
    """
    begun = owned_at = clock.monotonic()
    while left := _left(desk, asked):
        now = clock.monotonic()
        progress(desk.count(lanes_of(asked)))
        if desk.count_owned(left):
            owned_at = now
        unowned = now - owned_at > ownerless
        if unowned or now - begun > timeout:
            return Waited(len(left), unowned)
        clock.sleep(POLL)
    progress(desk.count(lanes_of(asked)))
    return Waited(0, unowned=False)


def _left(desk: DeadLetters, asked: Mapping[str, Sequence[LetterRequest]]) -> list[Lane]:
    """Return the lane of each request that is not carried out."""
    return [
        (provider, request.partition)
        for provider, requests in asked.items()
        for request in _waiting(desk, provider, requests)
    ]


def _waiting(
    desk: DeadLetters, provider: str, requests: Sequence[LetterRequest]
) -> list[LetterRequest]:
    fields = desk.waiting_requests(provider)
    return [request for request in requests if request.field in fields]


def lanes_of(asked: Mapping[str, Sequence[LetterRequest]]) -> set[Lane]:
    """Return the lanes that requests are about."""
    return {(name, request.partition) for name, requests in asked.items() for request in requests}
