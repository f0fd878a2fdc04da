"""Reads for the screen on a thread of its own: a Redis that is slow or away never stops a key."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, Literal

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.wakeup import StopSignal
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.errors import MemoryBusError
from memorybus.health.looks import Look, LookCache
from memorybus.log.entry import LoggedEvent
from memorybus.operations import journal

View = Literal["overview", "lanes", "letters", "tail"]

EVERY: Final = 1.0
"""Seconds between looks."""

MOST_LETTERS: Final = 2_000
"""Dead letters that are read whole; of more, the first of each lane."""

_EACH: Final = 20
_EVENTS: Final = 200


class Seen(msgspec.Struct, frozen=True):
    """What one look brought.

    Attributes:
        look: how the bus does; without a status if Redis could not be read.
        letters: the dead letters, if they are shown; None if they were not read.
        cut: whether that is not all of them.
        events: the newest events, if they are shown; None if they were not read.
        error: why something that is shown could not be read. Hostile text.
    """

    look: Look
    letters: Sequence[LocatedLetter] | None = None
    cut: bool = False
    events: Sequence[LoggedEvent] | None = None
    error: str = ""


class Reader:
    """Looks once a second while it runs.

    Args:
        settings: where the bus is.
        tell: is given what was seen; called from the reader's thread.
        clock: time.

    Attributes:
        view: what is shown, and so what is read beside the status.
    """

    def __init__(
        self, settings: Settings, tell: Callable[[Seen], None], clock: Clock = SYSTEM
    ) -> None:
        """Read nothing yet."""
        self.view: View = "overview"
        self._settings = settings
        self._tell = tell
        self._looks = LookCache(settings, clock)
        self._stop = StopSignal()

    def start(self) -> None:
        """Begin to read; the thread ends with the process, whatever it waits for."""
        threading.Thread(target=self._run, name="memorybus-top", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()

    def hurry(self, view: View) -> None:
        """Look now: something else is shown, or was changed."""
        self.view = view
        self._looks.forget()
        self._stop.interrupt()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._tell(self.read())
            self._stop.wait(EVERY)

    def read(self) -> Seen:
        """Look once."""
        view, look = self.view, self._looks.look()
        if look.status is None:
            return Seen(look, error="; ".join(one.text for one in look.findings))
        try:
            if view == "letters":
                letters, cut = self._letters(look)
                return Seen(look, letters=letters, cut=cut)
            return Seen(look, events=self._events() if view == "tail" else None)
        except MemoryBusError as error:
            return Seen(look, error=str(error))

    def _letters(self, look: Look) -> tuple[list[LocatedLetter], bool]:
        """Return the dead letters, and whether these are not all."""
        status = look.status
        found = [*status.providers, *status.copies] if status else []
        names = [one.live or one.name for one in found if one.dead_letters]
        with closing(DeadLetters(self._settings)) as desk:
            if sum(one.dead_letters for one in found) <= MOST_LETTERS:
                return desk.letters(names), False
            return [dead for name in names for dead in desk.first_letters(name, _EACH)], True

    def _events(self) -> list[LoggedEvent]:
        with closing(journal.open_history(self._settings)) as history:
            return journal.newest_events(history, journal.EventSelection(), _EVENTS, unread=[])
