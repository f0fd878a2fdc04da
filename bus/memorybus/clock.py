"""The only module that reads the time. All other code receives a `Clock`."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the bus needs to know of time."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch, for what people read and events carry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and leases."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a fake clock only moves its time forward."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return wall time in milliseconds."""
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    """Return monotonic seconds. It is called before each call of a provider, so it must be fast."""

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for `seconds`."""
        time.sleep(seconds)


SYSTEM: Clock = SystemClock()
