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

from memorybus.cleaning import clean_text
from memorybus.fence import CLOSE, OPEN, build_lines, line
from memorybus.ids import text_digest

SESSIONS, ITEMS = 1_024, 2_048
"""Sessions remembered, and items of one (G10): beyond them an item may be said twice."""

_ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
_ABOUT = re.compile(r"- \[[^\]\n]*\] ")
"""How an item begins that says when and by whom; the same words of another day are the same."""

_SPOKEN = frozenset(("user", "assistant"))

Sections = Sequence[tuple[str, Sequence[str]]]


class Injected:
    """Digests of injected items by session. Safe to call from any thread."""

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, dict[str, None]] = OrderedDict()

    def take(self, session: str, sections: Sections, room: int) -> str:
        """Return the items that are new to a session's window, at most `room` characters.

        Args:
            session: its slot.
            sections: providers with their lines, escaped.
            room: characters of the whole text.
        """
        with self._lock:
            seen = self._of(session)
            parts = build_lines(list(_unseen(sections, seen)), room)
            _note(seen, parts)
        return "\n".join(parts)

    def found(self, session: str, transcript: Iterable[Mapping[str, Any]]) -> None:
        """Note what a session's window really holds."""
        marks = [_mark(item) for message in transcript for item in _held(message)]
        with self._lock:
            seen = self._of(session)
            seen.clear()
            seen.update(dict.fromkeys(marks[-ITEMS:]))

    def forget(self, session: str) -> None:
        """Note that a session's window begins anew."""
        with self._lock:
            self._seen.pop(session, None)

    def copy(self, origin: str, session: str) -> None:
        """Note that a session begins with another's window, as a branch does."""
        with self._lock:
            self._of(session).update(self._seen.get(origin, {}))

    def _of(self, session: str) -> dict[str, None]:
        seen = self._seen.setdefault(session, {})
        self._seen.move_to_end(session)
        while len(self._seen) > SESSIONS:
            self._seen.popitem(last=False)
        return seen


def _unseen(sections: Sections, seen: Mapping[str, None]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections without what was seen; of two providers' same line the first's stays."""
    met = set(seen)
    for name, lines in sections:
        fresh = [text for text in lines if _mark(text) not in met]
        met.update(map(_mark, fresh))
        yield name, fresh


def _note(seen: dict[str, None], parts: Iterable[str]) -> None:
    seen.update({_mark(part): None for part in parts if part.startswith("- ")})
    while len(seen) > ITEMS:
        del seen[next(iter(seen))]


def _mark(item: str) -> str:
    return text_digest(" ".join(_ABOUT.sub("- ", item, count=1).split()))


def _held(message: Mapping[str, Any]) -> Iterator[str]:
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
