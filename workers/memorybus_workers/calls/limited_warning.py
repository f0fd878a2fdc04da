"""What a worker cannot do for now, said now and then instead of at every try."""

import logging

from memorybus.clock import Clock

_log = logging.getLogger("memorybus")

AGAIN = 60.0
"""Seconds after which the same reason is said again."""


class Complaint:
    """Warns of one thing that fails, each reason once a minute. Belongs to one thread.

    A pass in which nothing was to be done tells nothing, so there is no end of a complaint.

    Args:
        text: what it is; ``%s`` stands for the reason.
        clock: time, injected.
    """

    def __init__(self, text: str, clock: Clock) -> None:
        """Know of none."""
        self._text = text
        self._clock = clock
        self._said: dict[str, float] = {}

    def say(self, reason: object, error: Exception | None = None) -> None:
        """Warn, unless that was said less than a minute ago; show where `error` came from."""
        now, words = self._clock.monotonic(), str(reason)
        self._said = {one: at for one, at in self._said.items() if now - at < AGAIN}
        if words not in self._said:
            self._said[words] = now
            _log.warning(self._text, words, exc_info=error)
