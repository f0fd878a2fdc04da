"""Reads the bus on a thread of its own, so that a slow or missing Redis never blocks a key."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, Literal

import msgspec
from memorybus.clock import Clock
from memorybus.concurrency.wakeup import StopSignal
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.errors import MemoryBusError
from memorybus.health.verdict import BusState, BusStateCache
from memorybus.log.entry import LoggedEvent

from memorybus_console.operations import journal

TopView = Literal["overview", "lanes", "letters", "tail"]

READ_INTERVAL: Final = 1.0  # seconds between readings

MAX_LETTERS: Final = 2_000  # if there are more dead letters, only the first of each lane are read

_LETTERS_PER_LANE: Final = 20
_MAX_EVENTS: Final = 200


class Snapshot(msgspec.Struct, frozen=True):
    """What the reader read at one time.

    Attributes:
        letters, events: the dead letters, or the newest events, if the view shows them.
        error: why something that the view shows could not be read. Hostile text.
    """

    bus: BusState  # the state of the bus; without a status if Redis could not be read
    letters: Sequence[LocatedLetter] = ()
    cut: bool = False  # whether there are more dead letters than these
    events: Sequence[LoggedEvent] = ()
    error: str = ""


class Reader:
    """Takes a snapshot once a second while it runs.

    Args:
        receive: receives each snapshot; called from the reader's thread.

    Attributes:
        view: the view that is shown; it decides what is read besides the status.
    """

    def __init__(self, settings: Settings, receive: Callable[[Snapshot], object], clock: Clock):
        self.view: TopView = "overview"
        self._settings = settings
        self._receive = receive
        self._bus_state = BusStateCache(settings, clock)
        self.stop = StopSignal()

    def start(self) -> None:
        """Start to read; the thread is a daemon, so that it never delays the process's end."""
        threading.Thread(target=self._run, name="memorybus-top", daemon=True).start()

    def read_now(self, view: TopView) -> None:
        """Take a snapshot at once, because another view is shown or something was changed."""
        self.view = view
        self._bus_state.forget()
        self.stop.interrupt()

    def _run(self) -> None:
        while not self.stop.is_set():
            self._receive(self.read())
            self.stop.wait(READ_INTERVAL)

    def read(self) -> Snapshot:
        view, bus = self.view, self._bus_state.read()
        if bus.status is None:
            return Snapshot(bus, error="; ".join(finding.text for finding in bus.findings))
        try:
            if view == "letters":
                return self._with_letters(bus)
            return Snapshot(bus, events=self._events() if view == "tail" else ())
        except MemoryBusError as error:
            return Snapshot(bus, error=str(error))

    def _with_letters(self, bus: BusState) -> Snapshot:
        instances = [*bus.status.providers, *bus.status.copies] if bus.status else []
        names = [each.live or each.name for each in instances if each.dead_letters]
        with closing(DeadLetters(self._settings)) as desk:
            if sum(each.dead_letters for each in instances) <= MAX_LETTERS:
                return Snapshot(bus, letters=desk.letters(names))
            firsts = [desk.first_letters(name, _LETTERS_PER_LANE) for name in names]
        return Snapshot(bus, letters=[letter for some in firsts for letter in some], cut=True)

    def _events(self) -> list[LoggedEvent]:
        with closing(journal.open_history(self._settings)) as history:
            return journal.newest_events(history, journal.EventSelection(), _MAX_EVENTS, unread=[])
