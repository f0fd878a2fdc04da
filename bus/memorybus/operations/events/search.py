"""Events searched, newest first, a page at a time: by words, session, person, type and time.

A search reads back from the end, or from where another one stopped, as far as it must: until a page
is full, until `since`, or to the beginning. What it costs is what it looks at. In the log that is
every event on its way, of which one that is not meant is read no further than its header; in the
archive the manifests pass over segments that have nothing of a session or a type, or are too young.
So the newest events of a person who is here today, and a search of the last hours, cost the same
however long the history is; a session of long ago costs what the log still holds, and its own
segments; words that nobody said cost the whole history, which is why a search can be stopped.
"""

import re
from collections.abc import Callable

import msgspec

from memorybus.errors import ConfigError
from memorybus.events import Omitted
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.operations.events.words import SearchWords
from memorybus.operations.journal import ListedEvents
from memorybus.query.query import Query

SKEW_MS = 3_600_000
"""How far a producer's clock may be ahead of Redis's: what is searched since a time is looked for
among events that came so much earlier, too."""

LOOKS = 64
"""Events between two questions whether it is enough."""

_MARK = re.compile(r"p(\d{2,6}):(\d{1,16}-\d{1,16})")


class SearchedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are searched; what is empty or None does not matter.

    Attributes:
        id: the event of this id.
        words: all of them, in the texts of the event; a word with blanks is a phrase.
        session: in which session, whoever's it is.
        user: whose.
        type: the event's type tag, in any case.
        since: the earliest time of the event, milliseconds.
        until: the time before which it happened, milliseconds.
        canaries: with those of `memorybus doctor`; what is asked for by name is shown anyway.
    """

    id: str | None = None
    words: tuple[str, ...] = ()
    session: str | None = None
    user: str | None = None
    type: str | None = None
    since: int | None = None
    until: int | None = None
    canaries: bool = False

    def listed(self) -> ListedEvents:
        """Return what decides by type, and whether canaries are shown."""
        named = self.session is not None or self.id is not None
        return ListedEvents(type=self.type, canaries=self.canaries or named)

    def query(self) -> Query:
        """Return what asks the history for no less than what passes."""
        return msgspec.structs.replace(
            self.listed().query(),
            ids=(self.id,) if self.id else (),
            sessions=(self.session,) if self.session else (),
            users=(self.user,) if self.user else (),
            upto=0 if self.until is None else max(1, self.until - 1),
        )


def never(_: "EventSearch") -> bool:
    """Say that it is not enough."""
    return False


class EventSearch:
    """One search, which can be stopped and gone on with. Use from one thread.

    Attributes:
        found: the events so far, newest first.
        looked: how many events it has looked at.
        reached: how far back it is: when the last of these entered the log, milliseconds.
        mark: where it stopped; None at the beginning of what is searched.
        unread: what of the past could not be read.
    """

    def __init__(
        self,
        history: History,
        wanted: SearchedEvents,
        before: BackwardMark | None = None,
        enough: Callable[["EventSearch"], bool] = never,
    ) -> None:
        """Read nothing yet.

        Args:
            history: archive and log.
            wanted: which events.
            before: where an earlier search stopped; None for the end.
            enough: asked every `LOOKS` events whether to stop; it may tell people how far it is.
        """
        self._history = history
        self._wanted = wanted
        self._listed = wanted.listed()
        self._words = SearchWords(wanted.words)
        self._enough = enough
        self.found: list[LoggedEvent] = []
        self.looked = self.reached = 0
        self.mark = before
        self.unread: list[str] = []

    def run(self, limit: int) -> None:
        """Search until `limit` events are found, it is enough, or nothing is left.

        Raises:
            LogError: Redis is away, or the log cannot be used as it is.
        """
        for event in self._history.read_backward(
            self._wanted.query(), self.mark, damage=self.unread
        ):
            self.looked += 1
            self.reached = parse_entry_id(event.position.entry)[0]
            if self._wanted.since is not None and self.reached < self._wanted.since - SKEW_MS:
                break
            self.mark = BackwardMark(event.position.partition, event.position.entry)
            if self._is_meant(event):
                self.found.append(event)
            if len(self.found) == limit or (self.looked % LOOKS == 0 and self._enough(self)):
                return
        self.mark = None

    def _is_meant(self, event: LoggedEvent) -> bool:
        envelope, wanted = event.envelope, self._wanted
        if type(envelope.event) is Omitted or not self._listed.wants(event):
            return False
        timely = wanted.since is None or envelope.at >= wanted.since
        return timely and self._words.are_in(envelope.event)


def mark_text(mark: BackwardMark | None) -> str | None:
    """Return where a search stopped as commands and links name it."""
    return None if mark is None else f"p{mark.partition:02d}:{mark.entry}"


def mark_of(text: str | None) -> BackwardMark | None:
    """Return where a search stopped.

    Raises:
        ConfigError: nobody can read it.
    """
    found = _MARK.fullmatch(text or "")
    if text and not found:
        raise ConfigError(f"{text!r} does not say where a search stopped: p07:1764041234567-0 does")
    return BackwardMark(int(found[1]), found[2]) if found else None
