"""A warning that is not repeated at every try."""

import logging

from memorybus.clock import Clock

_log = logging.getLogger("memorybus")

REPEAT_SECONDS = 60.0
"""Seconds after which the same reason is warned of again."""


class RateLimitedWarning:
    """Logs a warning about one thing that fails, each reason once a minute. Belongs to one thread.

    Args:
        text: the warning; ``%s`` stands for the reason.
    """

    def __init__(self, text: str, clock: Clock) -> None:
        self._text = text
        self._clock = clock
        self._warned_at: dict[str, float] = {}

    def warn(self, reason: object, error: Exception | None = None) -> None:
        """Log the warning, at most once a minute for each reason; show `error`'s traceback."""
        now, words = self._clock.monotonic(), str(reason)
        self._warned_at = {
            one: at for one, at in self._warned_at.items() if now - at < REPEAT_SECONDS
        }
        if words not in self._warned_at:
            self._warned_at[words] = now
            _log.warning(self._text, words, exc_info=error)
