"""Wait for a named condition: the only place in the tests that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL = 0.01
_LONGEST = 0.05


def wait_until(condition: Callable[[], T], what: str, timeout: float = 10.0) -> T:
    """Return the condition's first true value; fail, naming it, if none comes in time.

    Args:
        condition: asked again and again; an exception it raises is not caught.
        what: the condition in words, as the failure shall name it.
        timeout: seconds.
    """
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what} (last value: {value!r})")
        # What is waited for needs the cores more than a question that takes long.
        time.sleep(min(_LONGEST, max(POLL, 2 * (now - asked))))


def still(value: Callable[[], object], seconds: float) -> Callable[[], bool]:
    """Return a condition for `wait_until`: `value` has not changed for so many seconds."""
    last = value()
    since = time.monotonic()

    def unchanged() -> bool:
        nonlocal last, since
        now = value()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    return unchanged
