"""The texts of events, and whether they contain all the words of a search."""

import unicodedata
from collections.abc import Iterable, Iterator

import msgspec
from memorybus.events import AnyEvent, UnknownEvent

_TEXTLESS_KEYS = frozenset({"role"})
"""Keys of messages whose values are no text that anybody wrote."""


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
        for name, one in value.items():
            if name not in _TEXTLESS_KEYS:
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _fold(text: str) -> str:
    """Return a text in which spellings that count as equal are the same."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(plain.casefold().split())
