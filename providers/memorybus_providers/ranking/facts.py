"""What a fact is made of: its text, in passages, the names in it, and its own name; pure.

Facts are known outside the database by names that are functions of the events alone, since a
row's number depends on the order of the keys, which is another in a rebuild (G8):

- What was said is named by its event: 4 hex digits for its session, by which it is looked up, the
  last 10 of the event's id, and the number of the piece within the event.
- What was kept may come by several events, in any order. It is named by whose it is, its kind and
  its text: 14 hex digits.

A name means something within its scope only. Two facts of one scope share a name by chance: in a
million facts, in one of 100,000 stores. They are judged together, in every order of events.
"""

import re
from typing import Final, Literal

from memorybus.events import Scope
from memorybus.ids import derived_id, text_digest

PATTERN = r"^[0-9a-f]{14}(-[0-9]{1,9})?$"  # the pattern of a name

MARK_CHARS = 4  # how many digits stand for a session in the name of something said

_EVENT_BYTES = 5
_KEPT_CHARS = 14


def mark_of_session(session: str) -> str:
    """Return the digits that stand for a session in the names of what was said in it."""
    return text_digest(clean(session))[:MARK_CHARS]


def name_of_said(mark: str, event_id: bytes, piece: int) -> str:
    """Return the name of something said: the piece `piece` of an event, from 0."""
    return f"{mark}{event_id[-_EVENT_BYTES:].hex()}-{piece}"


def name_of_kept(scope: Scope, kind: str, content: str) -> str:
    """Return the name of something kept."""
    owners = (clean(part) for part in (scope.agent, scope.user, scope.workspace))
    return derived_id(*owners, kind, content)[-_KEPT_CHARS:]


def session_mark(name: str) -> str | None:
    """Return the mark of the session in which a fact was said; None of one that was kept."""
    return name[:MARK_CHARS] if "-" in name else None


# -- pools --------------------------------------------------------------------------------------

SearchPool = Literal["talk", "answers"]
"""What is searched by itself, since its words have a rarity of their own: what people said and
kept, or the long answers of assistants and what was concluded, which changes nothing of how the
talk is found."""

ANSWER: Final = "answer"  # the kind of the pieces of an assistant's long answer

CONCLUSION: Final = "fact"  # the kind of facts that a deriver concluded

ASSISTANT_KINDS: Final = frozenset({"assistant", ANSWER})
"""The kinds of what an assistant said in a turn."""

MAX_TALK_CHARS = 600
"""An assistant's text of at most this many characters is part of the talk; a longer one is an
answer: mostly general advice, a hundred times as many words as the person's."""


def pool_of(kind: str) -> SearchPool:
    """Return the pool in which facts of a kind are searched."""
    return "answers" if kind in (ANSWER, CONCLUSION) else "talk"


# -- texts ------------------------------------------------------------------------------------

MAX_PASSAGE_CHARS = 350
"""Longer utterances are kept as passages of at most this many characters: recall gives whole
facts, and one that fills the budget leaves no room for others."""

NAMES_PER_FACT = 20  # names linked with one fact at most (G10)

_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = ("\n\n", "\n", ". ", "! ", "? ", " ")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]{1,40}(?: [A-Z][\w'-]{1,40}){0,3}")


def clean(text: str) -> str:
    """Return the text with what UTF-8 cannot hold (lone surrogates) as replacement characters."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def passages(text: str) -> list[str]:
    """Cut a text into verbatim pieces of at most `MAX_PASSAGE_CHARS`; a blank text has none.

    A cut falls on the last paragraph, line, sentence or word that ends in the piece's second half.
    """
    if len(text) <= MAX_PASSAGE_CHARS:
        return [text] if text and not text.isspace() else []
    pieces = []
    start = 0
    while start < len(text):
        end = _end(text, start)
        pieces.append(text[start:end].strip())
        start = end
    return [piece for piece in pieces if piece]


def names_in(text: str) -> list[str]:
    """Return the proper names a text mentions: capitalised words that do not begin a sentence."""
    return list(dict.fromkeys(_NAME.findall(text)))[:NAMES_PER_FACT]


def _end(text: str, start: int) -> int:
    limit = start + MAX_PASSAGE_CHARS
    if limit >= len(text):
        return len(text)
    for mark in _BREAKS:
        found = text.rfind(mark, limit - MAX_PASSAGE_CHARS // 2, limit)
        if found > 0:
            return found + len(mark)
    return limit
