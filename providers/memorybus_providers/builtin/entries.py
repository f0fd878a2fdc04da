"""Reads and changes the texts of MEMORY.md and USER.md as entries, and shows them; pure.

The format is that of Hermes Agent (its ``tools/memory_tool.py``): entries, which may have several
lines, are separated by a line that contains only ``§``. Since people edit these files, more is
accepted than Hermes writes: blanks around the ``§``, a separator at the very start or end, and CRLF
line ends. The separator is always written as ``\\n§\\n``.

No outcome of a write is an error. An event says what the agent *has* written to its own store. The
mirror may differ from that store, because a person edited it or because it was begun later. So a
write that does not fit is counted but not refused, and removes no entry unless it clearly means it.
The outcomes are:

- ``done``: the entry was added, replaced or removed.
- ``duplicate``: the same text is already an entry; nothing changes (Hermes does the same).
- ``unmatched``: no entry contains the old text. A removal has nothing to do; a replacement's new
  text is added, since the agent believes that it is remembered.
- ``ambiguous``: different entries contain the old text, and none is equal to it. None of them is
  changed; a replacement's new text is added.
- ``empty``: an add or a replacement without text, which Hermes refuses; nothing changes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec
from memorybus.events import Scope, StoreName, WriteAction

from memorybus_providers.language.languages import stems_of
from memorybus_providers.language.query import Question, parse_question
from memorybus_providers.language.sentences import split_prompt
from memorybus_providers.language.words import tokens

SEPARATOR = "\n§\n"

Entries: TypeAlias = tuple[str, ...]
WriteOutcome = Literal["done", "duplicate", "unmatched", "ambiguous", "empty"]

_SEPARATOR_LINE = re.compile(r"^[^\S\n]*§[^\S\n]*$", re.MULTILINE)
_TITLES = {"memory": "Your notes", "user": "About the user"}


class EntryWrite(msgspec.Struct, frozen=True):
    """One write of the agent: the parts of a `MemoryWritten` that change a file.

    Attributes:
        event_id: the envelope's id, which logs name instead of the text, since that is private.
    """

    action: WriteAction
    content: str
    old_text: str
    event_id: str = ""
    session: str = ""  # the session in which it was written
    at: int = 0  # the wall time of the event, milliseconds
    scope: Scope = Scope()  # the owner of the session


def parse(text: str) -> Entries:
    """Return the entries of a file's text in order, stripped and without empty ones.

    Exact duplicates are kept: a person may have put them there.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    stripped = (entry.strip() for entry in _SEPARATOR_LINE.split(lines))
    return tuple(entry for entry in stripped if entry)


def render(entries: Iterable[str]) -> str:
    """Return a file's text; ``parse(render(entries)) == entries`` for entries made by `parse`."""
    return SEPARATOR.join(entries)


def apply_write(entries: Entries, write: EntryWrite) -> tuple[Entries, WriteOutcome]:
    """Return the entries after one write, and its outcome.

    A content that contains a separator line becomes several entries, as it would when the file is
    read again.
    """
    new = parse(write.content)
    if write.action == "remove":
        return _replace(entries, write.old_text, ())
    if not new:
        return entries, "empty"
    if write.action == "add":
        return _add(entries, new)
    return _replace(entries, write.old_text, new)


def apply_writes(
    entries: Entries, writes: Iterable[EntryWrite]
) -> tuple[Entries, tuple[WriteOutcome, ...]]:
    """Return the entries after several writes in order, and the outcome of each."""
    outcomes: list[WriteOutcome] = []
    for write in writes:
        entries, outcome = apply_write(entries, write)
        outcomes.append(outcome)
    return entries, tuple(outcomes)


def _add(entries: Entries, new: Entries) -> tuple[Entries, WriteOutcome]:
    missing = tuple(dict.fromkeys(entry for entry in new if entry not in entries))
    return entries + missing, "done" if missing else "duplicate"


def _replace(entries: Entries, old_text: str, new: Entries) -> tuple[Entries, WriteOutcome]:
    found, outcome = _find(entries, old_text)
    if found is None:
        return _add(entries, new)[0], outcome
    return entries[:found] + new + entries[found + 1 :], "done"


def _find(entries: Entries, old_text: str) -> tuple[int | None, WriteOutcome]:
    """Return the index of the entry that is meant, by Hermes's rule of unique substrings."""
    old = old_text.replace("\r\n", "\n").replace("\r", "\n").strip()
    matches = [i for i, entry in enumerate(entries) if old and old in entry]
    if not matches:
        return None, "unmatched"
    if len({entries[i] for i in matches}) == 1:
        return matches[0], "done"
    if old in entries:
        return entries.index(old), "done"
    return None, "ambiguous"


def newest_within(entries: Sequence[str], limit: int) -> Entries:
    """Return the last entries that together fit in `limit` characters, in the file's order."""
    kept: list[str] = []
    room = limit
    for entry in reversed(entries):
        room -= len(entry) + (len(SEPARATOR) if kept else 0)
        if room < 0:
            break
        kept.append(entry)
    return tuple(reversed(kept))


def render_block(store: StoreName, entries: Entries, limit: int) -> str:
    """Return a store as a list for a system prompt, under a title; "" if it has no entries.

    The limit applies here and not to writes. Hermes refuses an entry that would exceed its limit,
    so an event over our limit was accepted by an agent with another limit, and the mirror must keep
    it. The oldest entries that do not fit are left out, and the title has their number.
    """
    if not entries:
        return ""
    shown = newest_within(entries, limit)
    left_out = len(entries) - len(shown)
    title = f"{_TITLES[store]} [{left_out} older left out]" if left_out else _TITLES[store]
    items = (f"- {entry}".replace("\n", "\n  ") for entry in shown)
    return "\n".join((f"{title}:", *items))


_WORD = re.compile(r"\w+")


def rank(entries: Sequence[str], query: str) -> list[tuple[float, int]]:
    """Return (score, index) of the entries that share a term with the query, best first.

    An entry without a shared term is left out, since all providers share the budget of a memory
    block. A query of stop words only ("what do you have?") asks for everything: all entries are
    returned with the score 0, the newest first.
    """
    question = parse_question(*split_prompt(query))
    if not question.terms:
        return [(0.0, i) for i in reversed(range(len(entries)))]
    weights = {term.stem: term.weight for term in question.terms}
    shared = [sorted(_matching_terms(entry, question)) for entry in entries]
    known_by = Counter(term for found in shared for term in found)
    scored = [
        (sum(weights[term] * math.log1p(len(entries) / known_by[term]) for term in found), i)
        for i, found in enumerate(shared)
        if found
    ]
    return sorted(scored, key=lambda pair: (-pair[0], -pair[1]))


def matched_words(entry: str, query: str) -> tuple[str, ...]:
    """Return the words of an entry that a query asks for, as the entry spells them."""
    question = parse_question(*split_prompt(query))
    return tuple(filter(question.asks_for, dict.fromkeys(_WORD.findall(entry))))


def _matching_terms(entry: str, question: Question) -> frozenset[str]:
    """Return the stems of the terms of which an entry contains a form.

    Words are compared in the likeliest language of the question and in English: a store of twenty
    entries does not show which of many possible languages is meant.
    """
    languages = tuple(dict.fromkeys((question.languages[0], "english")))
    entry_tokens = frozenset(tokens(entry))
    stems = frozenset[str]().union(*(stems_of(token, languages) for token in entry_tokens))
    return frozenset(
        term.stem
        for term in question.terms
        if not entry_tokens.isdisjoint(term.forms)
        or not stems.isdisjoint(stems_of(term.word, languages))
    )
