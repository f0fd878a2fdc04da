"""Removes recall blocks from a text, which a model may echo, so that they are not stored again.

However a text is split into pieces, feeding them gives the same result as `scrub` gives for the
whole, because `scrub` itself is one feed and a finish.

The rules:

- A tag is ``<``, at most `MAX_TAG` characters without a bracket, ``>``; its name is the fence's, in
  any case, with white space and attributes allowed. A longer one is text.
- Tags pair like brackets: a closing tag hides everything from the last opening tag that is open. A
  closing tag that closes nothing is removed by itself.
- An opening tag that never closes is either a *mention* (a person or a model speaks of the tag) or
  a *block cut off*. Their shape distinguishes them: every block has a line break right after its
  tag (ours does, Hermes's does). A mention is returned unchanged; a block cut off is removed, so
  that no memory leaks.
- Both are bounded (G10): after `MAX_BLOCK` withheld characters, more than any block has, the
  oldest opening tag counts as never closed. A mention then costs delay, but no text; a block cut
  off costs at most that many characters of what follows, but not the rest of the answer.
- Removing never joins two pieces into a tag: an unfinished tag that is interrupted by a real one
  (``<memory-<memory-context>``) gets a backslash after its bracket. The bracket stays, because it
  separates the text before it from the text after it.

This undoes our own fence. It is not the defence against hostile text: that is `fence.escape`.
"""

import re
from collections import deque

from memorybus.text.fence import MAX_BLOCK, TAG

MAX_TAG = 256
"""Characters between the brackets of a tag at most."""

_HEAD = "<\\s*(?P<slash>/\\s*)?"
_REST = "(?:[\\s/][^<>]*)?"
_TAG = re.compile(f"(?=<[^<>]{{0,{MAX_TAG}}}>){_HEAD}{TAG}{_REST}>", re.IGNORECASE)
_HINT = re.compile(_HEAD + TAG, re.IGNORECASE)
_CUT_OFF = re.compile("<[^<>]*>[ \\t]*[\\r\\n]")


def _any_start_of(word: str, rest: str) -> str:
    """Return a pattern of every prefix of `word`, and of `word` with `rest`."""
    pattern = rest
    for letter in reversed(word):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


_UNFINISHED = re.compile(_HEAD + _any_start_of(TAG, _REST), re.IGNORECASE)


def scrub(text: str) -> str:
    """Return `text` without its recall blocks. Text without a tag is returned as it is.

    The result holds no closing tag; an opening tag in it is a mention. Scrubbing it again changes
    nothing.
    """
    if "<" not in text or not _HINT.search(text):
        return text
    scrubber = StreamScrubber()
    return scrubber.feed(text) + scrubber.finish()


class StreamScrubber:
    """Scrubs a text that comes in pieces. Use one for each stream.

    It withholds at most `limit` characters and two tags: what may be a block, and the beginning of
    a tag at the end of a piece.

    Args:
        limit: withheld characters after which an opening tag counts as never closed.
    """

    def __init__(self, limit: int = MAX_BLOCK) -> None:
        self._limit = limit
        self._tail = ""
        self._open: deque[list[str]] = deque()
        self._held = 0

    def feed(self, chunk: str) -> str:
        """Take the next piece; return what can be shown now."""
        if not self._open and not self._tail and "<" not in chunk:
            return chunk
        data = self._tail + chunk
        shown: list[str] = []
        done = 0
        for tag in _TAG.finditer(data):
            self._text(_unjoined(data[done : tag.start()]), shown)
            self._tag(tag, shown)
            done = tag.end()
        keep = _tail_start(data, done)
        self._text(data[done:keep], shown)
        self._tail = data[keep:]
        return "".join(shown)

    def finish(self) -> str:
        """End the text; return withheld text that is no block. The scrubber can be used again."""
        shown: list[str] = []
        self._text(self._tail, shown)
        self._tail = ""
        while self._open:
            self._give_up(shown)
        return "".join(shown)

    def _text(self, text: str, shown: list[str]) -> None:
        """Show text, or withhold it after an open tag, up to exactly the limit."""
        at = 0
        while self._open and at < len(text):
            piece = text[at : at + max(self._limit - self._held, 0)]
            self._open[-1].append(piece)
            self._held += len(piece)
            at += len(piece)
            if at < len(text):
                self._give_up(shown)
        shown.append(text[at:])

    def _tag(self, tag: re.Match[str], shown: list[str]) -> None:
        if tag["slash"]:
            if self._open:
                self._held -= sum(map(len, self._open.pop()))
            return
        while self._open and self._held + len(tag[0]) > self._limit:
            self._give_up(shown)
        self._open.append([tag[0]])
        self._held += len(tag[0])

    def _give_up(self, shown: list[str]) -> None:
        """Treat the oldest open tag as never closed: show a mention, drop a block cut off."""
        oldest = "".join(self._open.popleft())
        if _CUT_OFF.match(oldest):
            self._open.clear()
            self._held = 0
        else:
            shown.append(oldest)
            self._held -= len(oldest)


def _tail_start(data: str, done: int) -> int:
    """Return where the end of `data` begins that may still become a part of a tag.

    It includes an unfinished tag right before it, which is changed if a tag follows.
    """
    last = data.rfind("<", done)
    if last < 0 or not _is_unfinished(data, last, len(data)):
        return len(data)
    before = data.rfind("<", done, last)
    return before if before >= 0 and _is_unfinished(data, before, last) else last


def _is_unfinished(data: str, start: int, end: int) -> bool:
    """Return whether ``data[start:end]`` is the beginning of a tag whose end is still to come."""
    return end - start - 1 <= MAX_TAG and _UNFINISHED.fullmatch(data, start, end) is not None


def _unjoined(text: str) -> str:
    """Return the text before a tag, changed so that no tag can form with what follows."""
    last = text.rfind("<")
    if last < 0 or not _is_unfinished(text, last, len(text)):
        return text
    return f"{text[:last]}<\\{text[last + 1 :]}"
