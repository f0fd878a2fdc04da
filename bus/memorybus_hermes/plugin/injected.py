"""Tracks which recalled items a session's context window holds, so that none is injected twice.

Hermes keeps the exact bytes that it sent with a user's message, recall included, and sends them
again with every later request, until a compression removes them. So an item is injected once per
window. After every turn the window's items are read from Hermes's own transcript; in between, the
items that were given out count as well. The window's own messages count, too: recalling what was
just said would only fill it. The table belongs to the process, because a gateway may create a new
instance for the same session at any time. After a restart of the process the first completed turn
fills it again.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memorybus import clean_text
from memorybus.ids import text_digest
from memorybus.text.fence import CLOSE, OPEN, Sections, build_lines, line

from memorybus_hermes.plugin.oldest import drop_oldest

MAX_SESSIONS, MAX_ITEMS = 1_024, 2_048
"""The most sessions, and items of each (G10): beyond them an item may be injected twice."""

_ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
_ABOUT = re.compile(r"- \[[^\]\n]*\] ")
"""The beginning of an item with its date and speaker; items that differ only there are equal."""

_SPOKEN_ROLES = frozenset(("user", "assistant"))


class ContextWindow:
    """One session's window: digests of the items in its messages, and of those given out since.

    Messages are read only once, so that a turn costs the same in a long session. If the last one
    that was read has changed, the window was cut or rewritten, and it is read again from its start.

    Attributes:
        given: the items that were given out since the transcript was read.
    """

    def __init__(self) -> None:
        self.given: dict[str, None] = {}
        self.spoken: list[str] = []  # the words of its newest messages
        self._held: dict[str, None] = {}
        self._count = 0
        self._last = ""

    def __contains__(self, mark: str) -> bool:
        return mark in self.given or mark in self._held

    def __len__(self) -> int:
        return len(self.given.keys() | self._held.keys())

    def give(self, marks: Iterable[str]) -> None:
        """Note the items that go into the next message."""
        self.given |= dict.fromkeys(marks)
        _drop_oldest(self.given)

    def read(self, transcript: Sequence[Mapping[str, Any]]) -> None:
        """Read the items of its messages; they replace the items that were given out."""
        count = self._count
        if not 0 < count <= len(transcript) or self._last != _fingerprint(transcript[count - 1]):
            self._held, self.spoken, count = {}, [], 0
        for message in transcript[count:]:
            spoken = tuple(_spoken_words(message))
            items = (*map(line, spoken), *fenced_items(message))
            self._held |= dict.fromkeys(map(_mark, items))
            self.spoken += spoken
        _drop_oldest(self._held)
        del self.spoken[:-MAX_ITEMS]
        self.given = {}
        self._count = len(transcript)
        self._last = _fingerprint(transcript[-1]) if transcript else ""

    def copy(self) -> "ContextWindow":
        other = ContextWindow()
        other.given = self._held | self.given
        other.spoken = [*self.spoken]
        return other


class InjectedRecall:
    """The windows by session. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: OrderedDict[str, ContextWindow] = OrderedDict()

    def take(self, session: str, sections: Sections, room: int) -> str:
        """Return the items that are new to a session's window, at most `room` characters."""
        with self._lock:
            window = self._window_of(session)
            parts = build_lines(list(_new_sections(sections, window)), room)
            window.give(_mark(part) for part in parts if part.startswith("- "))
        return "\n".join(parts)

    def spoken(self, session: str) -> Sequence[str]:
        with self._lock:
            return tuple(self._window_of(session).spoken)

    def note_window(self, session: str, transcript: Sequence[Mapping[str, Any]]) -> None:
        """Read from a transcript which items a session's window really holds."""
        with self._lock:
            self._window_of(session).read(transcript)

    def forget(self, session: str) -> None:
        """Forget a session's window, because it begins empty again."""
        with self._lock:
            self._windows.pop(session, None)

    def copy(self, origin: str, session: str) -> None:
        """Note that a session begins with another's window, as a branch does."""
        with self._lock:
            self._windows[session] = self._window_of(origin).copy()

    def _window_of(self, session: str) -> ContextWindow:
        window = self._windows.setdefault(session, ContextWindow())
        self._windows.move_to_end(session)
        drop_oldest(self._windows, MAX_SESSIONS)
        return window


def _new_sections(sections: Sections, window: ContextWindow) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections without known items; of equal items of two providers the first stays."""
    met: set[str] = set()
    for name, lines in sections:
        fresh = [text for text in lines if (mark := _mark(text)) not in window and mark not in met]
        met.update(map(_mark, fresh))
        yield name, fresh


def _drop_oldest(marks: dict[str, None]) -> None:
    for mark in list(marks)[: max(0, len(marks) - MAX_ITEMS)]:
        del marks[mark]


def _mark(item: str) -> str:
    return text_digest(" ".join(_ABOUT.sub("- ", item, count=1).split()))


def _fingerprint(message: Mapping[str, Any]) -> str:
    """Return a digest by which a message is recognised again."""
    words = message.get("content") if isinstance(message, Mapping) else None
    return text_digest(repr(words))


def _spoken_words(message: Mapping[str, Any]) -> Iterator[str]:
    words = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(words, str) and message.get("role") in _SPOKEN_ROLES:
        yield clean_text(words)


def fenced_items(message: Mapping[str, Any]) -> Iterator[str]:
    sent = message.get("api_content") if isinstance(message, Mapping) else None
    if isinstance(sent, str) and OPEN in sent:
        fenced = sent.rpartition(OPEN)[2].partition(CLOSE)[0]
        yield from (match[0].rstrip("\n") for match in _ITEM.finditer(fenced))
