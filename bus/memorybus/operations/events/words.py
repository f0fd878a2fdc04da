"""Words in events: which texts an event holds, and whether all the words of a search are there."""

import unicodedata
from collections.abc import Iterable, Iterator

import msgspec

from memorybus.events import AnyEvent, UnknownEvent

_SILENT = frozenset({"role"})
"""Keys of messages whose values nobody said."""


class SearchWords:
    """The words and phrases of a search: an event has to hold them all, in any of its texts.

    Case, widths and the kind of white space do not matter; a part of a word is enough.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        """Fold them; what says nothing is left out."""
        self._words = tuple(word for word in map(_fold, words) if word)

    def are_in(self, event: AnyEvent) -> bool:
        """Say whether an event holds all the words; without any, each event does."""
        if not self._words:
            return True
        texts = [_fold(text) for text in texts_of(event)]
        return all(any(word in text for text in texts) for word in self._words)

    def excerpt(self, event: AnyEvent) -> str:
        """Return the text that holds the first word, from a little before it; "" without words."""
        for text in texts_of(event) if self._words else ():
            flat = " ".join(text.split())
            at = _fold(flat).find(self._words[0])
            if at >= 0:
                return flat if at < _BEFORE else f"…{flat[at - _BEFORE // 2 :]}"
        return ""


_BEFORE = 40
"""Characters before a word from which on a text is cut; half of them stay."""


def texts_of(event: AnyEvent) -> Iterator[str]:
    """Yield what an event says, field by field; of one that nobody can read, its bytes as text."""
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
        for name, one in value.items():
            if name not in _SILENT:
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _fold(text: str) -> str:
    """Return a text by which two spellings of a word are one."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(plain.casefold().split())
