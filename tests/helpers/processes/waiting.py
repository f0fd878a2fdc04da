"""Wait for a named condition: the only place in the tests that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL = 0.01
_MAX_POLL_SECONDS = 0.05
_STALL_SECONDS = 0.1
"""A sleep that takes so many seconds longer than it was to is a machine that stood still."""


def wait_until(condition: Callable[[], T], what: str, timeout: float = 30.0) -> T:
    """Return the condition's first true value; fail, naming it, if none comes in time.

    Args:
        condition: asked again and again; an exception it raises is not caught.
        what: the condition in words, as the failure shall name it.
        timeout: seconds; those in which the whole machine stood still do not count.
    """
    began = time.monotonic()
    deadline = began + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        if asked > deadline:  # so the last question is one that was asked after it
            raise AssertionError(f"not within {timeout:g} s: {what} (last value: {value!r})")
        # What is waited for needs the cores more than a question that takes long or comes often.
        now = time.monotonic()
        deadline += _stood(min(_MAX_POLL_SECONDS, max(POLL, 2 * (now - asked), (now - began) / 10)))


def _stood(pause: float) -> float:
    """Sleep; return by how much too long that was, if it was no common delay."""
    begin = time.monotonic()
    time.sleep(pause)
    over = time.monotonic() - begin - pause
    return over if over > _STALL_SECONDS else 0.0


def still(value: Callable[[], object], seconds: float) -> Callable[[], bool]:
    """Return a condition for `wait_until`: `value` has not changed for so many seconds.

    Those in which nobody looked do not count: the machine may have stood still.
    """
    last = value()
    looked, quiet = time.monotonic(), 0.0

    def unchanged() -> bool:
        nonlocal last, looked, quiet
        now, at = value(), time.monotonic()
        quiet = quiet + min(at - looked, _MAX_POLL_SECONDS + _STALL_SECONDS) if now == last else 0.0
        last, looked = now, at
        return quiet >= seconds

    return unchanged
