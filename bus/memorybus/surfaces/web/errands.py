"""What takes longer than a request: it runs on a thread, and pages show how far it is.

A server that ends takes its errands along. Those that change something may be cut off anywhere, as
by a kill of the command: the same act goes on with them.
"""

import logging
import threading
from collections.abc import Callable

import msgspec

from memorybus.clock import Clock
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.text.redact import masked

Tell = Callable[[str, int, int], None]
"""Receives the step, and how many places of how many are done; 0 if nobody knows."""

_KEPT = 20
"""Errands that are remembered."""

_log = logging.getLogger("memorybus")


class Errand(msgspec.Struct, frozen=True):
    """One errand.

    Attributes:
        what: what it does: "rebuild".
        of: of which provider.
        by: who wants it.
        begun_at: when (wall time, milliseconds).
        step: what it does now.
        done: places of the history it has passed.
        total: of how many; 0 if nobody knows.
        said: what it came to; "" while it runs.
        failed: why it failed; "" if it did not.
    """

    what: str
    of: str
    by: str
    begun_at: int
    step: str = ""
    done: int = 0
    total: int = 0
    said: str = ""
    failed: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is not over."""
        return not self.said and not self.failed


class Errands:
    """Runs errands, one of a provider at a time; any thread may ask.

    Args:
        clock: time.
    """

    def __init__(self, clock: Clock) -> None:
        """Run nothing yet."""
        self._clock = clock
        self._lock = threading.Lock()
        self._errands: list[Errand] = []

    def all(self) -> list[Errand]:
        """Return those that run, and the last of those that are over; the newest first."""
        with self._lock:
            return self._errands[::-1]

    def begin(self, what: str, of: str, by: str, work: Callable[[Tell], str]) -> None:
        """Begin one.

        Args:
            what: what it does.
            of: of which provider.
            by: who wants it.
            work: does it, and returns what it came to. It raises `MemoryBusError` if it fails.

        Raises:
            ConfigError: another one of this provider runs.
        """
        errand = Errand(what, of, by, self._clock.now_ms())
        with self._lock:
            if any(one.runs and one.of == of for one in self._errands):
                raise ConfigError(f"something is done with {of} already; see it at the history")
            self._errands = [*self._errands, errand][-_KEPT:]
        place = (of, errand.begun_at)
        threading.Thread(
            target=self._run, args=(place, work), name=f"{what} of {of}", daemon=True
        ).start()

    def _run(self, place: tuple[str, int], work: Callable[[Tell], str]) -> None:
        def tell(step: str, done: int, total: int) -> None:
            self._change(place, step=step, done=done, total=total)

        try:
            self._change(place, said=work(tell))
        except (MemoryBusError, OSError) as error:
            self._change(place, failed=masked(str(error)))
        except BaseException:
            self._change(place, failed="an error of memorybus: see the page's log")
            _log.exception("an errand failed")

    def _change(self, place: tuple[str, int], **changes: str | int) -> None:
        with self._lock:
            self._errands = [
                msgspec.structs.replace(one, **changes) if (one.of, one.begun_at) == place else one
                for one in self._errands
            ]
