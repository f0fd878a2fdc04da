"""What fails again and again is said once a minute."""

import logging

from memorybus.testing import FakeClock
from memorybus_workers.logs import REPEAT_SECONDS, RateLimitedWarning


def test_each_reason_is_said_once_a_minute(caplog):
    """G10: who looks each second does not fill the log; another reason is news at once."""
    clock = FakeClock()
    warning = RateLimitedWarning("it waits: %s", clock)
    with caplog.at_level(logging.WARNING, "memorybus"):
        for reason in ("refused", "refused", "no password", "refused"):
            warning.warn(OSError(reason))
            clock.advance(1.0)
        assert caplog.messages == ["it waits: refused", "it waits: no password"]
        clock.advance(REPEAT_SECONDS)
        warning.warn("refused")
    assert caplog.messages[2:] == ["it waits: refused"]
