"""Searches events, newest first, a page at a time: by words, session, person, type and time.

A search reads backward from the end of the history, or from where another search stopped. It reads
until a page is full, until `since`, or to the beginning. It costs as much as it reads:

- In the log it reads every event on its way; of an event that cannot match, only the header.
- In the archive the manifests let it skip segments that hold nothing of a session or a type, and
  segments that are too new.

So the cost of finding the newest events of an active person, or those of the last hours, does not
depend on the length of the history. An old session costs what the log still holds, and its own
segments. Words that nobody said cost the whole history, which is why a search can be stopped.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

import msgspec
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ConfigError
from memorybus.events import AnyEvent, Omitted, UnknownEvent
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.query.query import Query

from memorybus_console.operations.journal import EventSelection, older_forms, without_older_forms

SKEW_MS = 3_600_000
"""How far a producer's clock may be ahead of Redis's, milliseconds. A search since a time also
reads events that entered the log earlier by this time."""

ASK_EVERY = 64  # how many events a search reads before it asks again whether to stop

_MARK = re.compile(r"p(\d{2,6}):(\d{1,16}-\d{1,16})")


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for; a field that is empty or None restricts nothing.

    Attributes:
        words: words that the texts of the event must all contain; one with blanks is a phrase.
        canaries: whether events of `memorybus doctor` are found, too; they always are if an id or
            a session is given.
    """

    id: str | None = None
    words: tuple[str, ...] = ()
    session: str | None = None
    user: str | None = None
    type: str | None = None  # the event's type tag, in any case
    since: int | None = None  # the earliest time of the event, milliseconds
    until: int | None = None  # the time before which the event happened, milliseconds
    canaries: bool = False

    def selection(self) -> EventSelection:
        """Return the part of the request about types and canaries."""
        named = self.session is not None or self.id is not None
        return EventSelection(type=self.type, canaries=self.canaries or named)

    def query(self) -> Query:
        """Return a query for the history that finds at least every event that matches."""
        return msgspec.structs.replace(
            self.selection().query(),
            ids=(self.id,) if self.id else (),
            sessions=(self.session,) if self.session else (),
            users=(self.user,) if self.user else (),
            upto=0 if self.until is None else max(1, self.until - 1),
        )


def never_enough(_: "EventSearch") -> bool:
    return False


class EventSearch:
    """One search, which can be stopped and continued later. Use from one thread.

    Attributes:
        reached: when the last of these entered the log, milliseconds.
    """

    def __init__(
        self,
        history: History,
        request: SearchRequest,
        before: BackwardMark | None = None,
        enough: Callable[["EventSearch"], bool] = never_enough,
    ) -> None:
        """Read nothing yet.

        Args:
            before: where an earlier search stopped; None for the end of the history.
        """
        self._history = history
        self._wanted = request
        self._selection = request.selection()
        self._words = SearchWords(request.words)
        self._enough = enough
        self.found: list[LoggedEvent] = []  # the events so far, newest first
        self.checked = self.reached = 0
        self.mark = before  # where the search stopped; None if there is nothing left to search
        self.unread: list[str] = []  # the parts of the history that could not be read, in words

    def run(self, limit: int) -> None:
        """Search until `limit` events are found, `enough` says so, or nothing is left."""
        query = self._wanted.query()
        older = older_forms(self._history, query) if self.mark else ()
        events = self._history.read_backward(query, self.mark, damage=DamageHandler(self.unread))
        for event in without_older_forms(events, older):
            self.checked += 1
            self.reached = parse_entry_id(event.position.entry)[0]
            if self._wanted.since is not None and self.reached < self._wanted.since - SKEW_MS:
                break
            self.mark = BackwardMark(event.position.partition, event.position.entry)
            if self._matches(event):
                self.found.append(event)
            if len(self.found) == limit or (self.checked % ASK_EVERY == 0 and self._enough(self)):
                return
        self.mark = None

    def _matches(self, event: LoggedEvent) -> bool:
        envelope, request = event.envelope, self._wanted
        if type(envelope.event) is Omitted or not self._selection.wants(event):
            return False
        timely = request.since is None or envelope.at >= request.since
        return timely and self._words.are_in(envelope.event)


def format_mark(mark: BackwardMark | None) -> str | None:
    """Return the text that commands and links use for where a search stopped."""
    return None if mark is None else f"p{mark.partition:02d}:{mark.entry}"


def parse_mark(text: str | None) -> BackwardMark | None:
    """Return where a search stopped, from its text; None for an empty one.

    Raises:
        ConfigError: the text cannot be read.
    """
    match = _MARK.fullmatch(text or "")
    if text and not match:
        raise ConfigError(f"{text!r} is not a place to continue from, as p07:1764041234567-0 is")
    return BackwardMark(int(match[1]), match[2]) if match else None


_TEXTLESS_KEYS = frozenset({"role"})  # keys of messages whose values are no text that anybody wrote


class SearchWords:
    """The words and phrases of a search: an event must contain them all, in any of its texts.

    Case, character widths and the kind of white space do not matter; a part of a word is enough.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words = tuple(word for word in map(_fold, words) if word)

    def are_in(self, event: AnyEvent) -> bool:
        """Return whether an event contains all the words; without words, every event does."""
        if not self._words:
            return True
        texts = [_fold(text) for text in texts_of(event)]
        return all(any(word in text for text in texts) for word in self._words)

    def excerpt(self, event: AnyEvent) -> str:
        """Return the text that contains the first word, from shortly before it; "" if none does."""
        for text in texts_of(event) if self._words else ():
            flat = " ".join(text.split())
            at = _fold(flat).find(self._words[0])
            if at >= 0:
                return flat if at < _MAX_CHARS_BEFORE else f"…{flat[at - _MAX_CHARS_BEFORE // 2 :]}"
        return ""


_MAX_CHARS_BEFORE = 40
"""A text with more characters before the word is cut; half as many stay before it."""


def texts_of(event: AnyEvent) -> Iterator[str]:
    """Yield an event's texts, field by field; of an unknown event, its name and bytes as text."""
    if isinstance(event, UnknownEvent):
        yield event.name
        yield event.raw.decode("utf-8", "replace")
        return
    for value in msgspec.structs.asdict(event).values():
        yield from _texts(value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in _TEXTLESS_KEYS:
                yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _fold(text: str) -> str:
    """Return a text in which spellings that count as equal are the same."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(plain.casefold().split())
