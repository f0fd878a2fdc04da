"""What recall a session's window already holds, so that no turn says it again.

Hermes keeps the exact bytes it sent with a user's message, recall included, and sends them again
with every later request, until a compression takes them out. So an item is injected once per
window. What the window holds is read from Hermes's own transcript after every turn; in between,
what was given out counts. So do the window's own messages: what was just said in a conversation
would only fill it. The table is the process's, because a gateway makes a new instance for the same
session whenever it likes; after a restart of the process the first turn that completes fills it
again.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memorybus import clean_text
from memorybus.ids import text_digest
from memorybus.text.fence import CLOSE, OPEN, build_lines, line

SESSIONS, ITEMS = 1_024, 2_048
"""Sessions remembered, and items of one (G10): beyond them an item may be said twice."""

_ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
_ABOUT = re.compile(r"- \[[^\]\n]*\] ")
"""How an item begins that says when and by whom; the same words of another day are the same."""

_SPOKEN = frozenset(("user", "assistant"))

Sections = Sequence[tuple[str, Sequence[str]]]


class ContextWindow:
    """One session's window: digests of what its messages hold, and of what was given out since.

    Messages that were read once are not read again, so that a turn costs the same in a long
    session; if the last of them is another now, the window was cut or rewritten, and is read anew.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        self.given: dict[str, None] = {}
        self._held: dict[str, None] = {}
        self._count = 0
        self._last = ""

    def __contains__(self, mark: str) -> bool:
        """Say whether an item is in it."""
        return mark in self.given or mark in self._held

    def __len__(self) -> int:
        """Return how many items it remembers."""
        return len(self.given.keys() | self._held.keys())

    def give(self, marks: Iterable[str]) -> None:
        """Note what goes into the next message."""
        self.given |= dict.fromkeys(marks)
        _bound(self.given)

    def read(self, transcript: Sequence[Mapping[str, Any]]) -> None:
        """Take what its messages hold, instead of what was given out."""
        count = self._count
        if not 0 < count <= len(transcript) or self._last != _print(transcript[count - 1]):
            self._held, count = {}, 0
        for message in transcript[count:]:
            self._held |= dict.fromkeys(map(_mark, _holds(message)))
        _bound(self._held)
        self.given = {}
        self._count = len(transcript)
        self._last = _print(transcript[-1]) if transcript else ""

    def copy(self) -> "ContextWindow":
        """Return another that holds the same."""
        other = ContextWindow()
        other.given = self._held | self.given
        return other


class InjectedRecall:
    """The windows by session. Safe to call from any thread."""

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._lock = threading.Lock()
        self._windows: OrderedDict[str, ContextWindow] = OrderedDict()

    def take(self, session: str, sections: Sections, room: int) -> str:
        """Return the items that are new to a session's window, at most `room` characters.

        Args:
            session: its slot.
            sections: providers with their lines, escaped.
            room: characters of the whole text.
        """
        with self._lock:
            window = self._of(session)
            parts = build_lines(list(_unseen(sections, window)), room)
            window.give(_mark(part) for part in parts if part.startswith("- "))
        return "\n".join(parts)

    def found(self, session: str, transcript: Sequence[Mapping[str, Any]]) -> None:
        """Note what a session's window really holds."""
        with self._lock:
            self._of(session).read(transcript)

    def forget(self, session: str) -> None:
        """Note that a session's window begins anew."""
        with self._lock:
            self._windows.pop(session, None)

    def copy(self, origin: str, session: str) -> None:
        """Note that a session begins with another's window, as a branch does."""
        with self._lock:
            self._windows[session] = self._of(origin).copy()

    def _of(self, session: str) -> ContextWindow:
        window = self._windows.setdefault(session, ContextWindow())
        self._windows.move_to_end(session)
        while len(self._windows) > SESSIONS:
            self._windows.popitem(last=False)
        return window


def _unseen(sections: Sections, window: ContextWindow) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections without what was seen; of two providers' same line the first's stays."""
    met: set[str] = set()
    for name, lines in sections:
        fresh = [text for text in lines if (mark := _mark(text)) not in window and mark not in met]
        met.update(map(_mark, fresh))
        yield name, fresh


def _bound(marks: dict[str, None]) -> None:
    for mark in list(marks)[: max(0, len(marks) - ITEMS)]:
        del marks[mark]


def _mark(item: str) -> str:
    return text_digest(" ".join(_ABOUT.sub("- ", item, count=1).split()))


def _print(message: Mapping[str, Any]) -> str:
    """Return what a message is known by again."""
    words = message.get("content") if isinstance(message, Mapping) else None
    return text_digest(repr(words))


def _holds(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a message of the window holds, as items: its own words, and its fence's."""
    words = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(words, str) and message.get("role") in _SPOKEN:
        yield line(clean_text(words))
    yield from items_in(message)


def items_in(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the items of the fence that Hermes sent with a message."""
    sent = message.get("api_content") if isinstance(message, Mapping) else None
    if isinstance(sent, str) and OPEN in sent:
        fenced = sent.rpartition(OPEN)[2].partition(CLOSE)[0]
        yield from (found[0].rstrip("\n") for found in _ITEM.finditer(fenced))
