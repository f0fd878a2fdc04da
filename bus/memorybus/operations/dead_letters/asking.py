"""Ask the lanes' owners to settle dead letters, and wait for them."""

from collections.abc import Callable, Mapping, Sequence

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import Dead, DeadLetters
from memorybus.dead_letters.requests import LetterRequest
from memorybus.ids import new_id
from memorybus.operations.dead_letters import selection, waiting
from memorybus.operations.dead_letters.selection import OperatorDecision
from memorybus.operations.dead_letters.waiting import Waited

Asked = Mapping[str, Sequence[LetterRequest]]
"""What was asked, by provider."""


def sent(desk: DeadLetters, decision: OperatorDecision, chosen: Sequence[Dead]) -> Asked:
    """Write an operator's decision about dead letters down for the owners of their lanes.

    Raises:
        TooManyRequests: of a provider too many wait.
        LogUnavailable: Redis is away.
    """
    asked: dict[str, list[LetterRequest]] = {}
    for provider, request in selection.requests(decision, chosen, new_id):
        asked.setdefault(provider, []).append(request)
    for provider, requests in asked.items():
        desk.send(provider, requests)
    return asked


def waited(
    desk: DeadLetters,
    asked: Asked,
    settings: Settings,
    clock: Clock,
    *,
    timeout: float,
    progress: Callable[[int], None] = lambda _: None,
) -> Waited:
    """Wait for what was asked; lanes that nobody owns are given up after two leases.

    Args:
        desk: where it was written.
        asked: what `sent` returned.
        settings: their `lease`.
        clock: time.
        timeout: seconds.
        progress: told how many dead letters the lanes have.
    """
    return waiting.wait(
        desk,
        asked,
        clock,
        timeout=timeout,
        ownerless=2 * settings.lease,
        progress=progress,
    )
