"""Prepares what is sent to a service: texts, who said them, names, replaced entries; pure.

Ids are hostile data; the names that a service gets are safe: letters, digits, ``-`` and ``_``. A
plain lower-case id is its own name. Any other id becomes its readable part, a ``_`` and a digest of
the whole id; no plain id contains a ``_``. The names of several ids are joined by ``__``, which no
single name contains. So different lists of ids never have the same name, and people can still read
it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from memorybus.events import Delegated, MemoryWritten, TurnCompleted
from memorybus.ids import derived_id

_BREAK = re.compile(r"\s")

_DIGITS = re.compile(r"[0-9]{1,15}")

LONGEST_QUESTION = 2_000
"""The most characters of a question that are sent to a service, which makes one vector of it."""


def clean_question(query: str) -> str:
    """Return a query trimmed and cut to `LONGEST_QUESTION`; "" if it is blank."""
    return sendable(query).strip()[:LONGEST_QUESTION].strip()


def sendable(text: str) -> str:
    """Return a text without NUL, which Postgres cannot store, and without lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def split_text(text: str, most: int) -> Iterator[str]:
    """Yield a text in parts of at most `most` characters, which together are the text.

    It is split before white space if there is any in the last tenth of a part. Parts of nothing but
    white space are left out.
    """
    start = 0
    while start < len(text):
        end = _end(text, start, most)
        part = text[start:end]
        if part.strip():
            yield part
        start = end


def _end(text: str, start: int, most: int) -> int:
    if len(text) - start <= most:
        return len(text)
    end = start + most
    for at in range(end, end - most // 10, -1):
        if _BREAK.match(text, at):
            return at
    return end


def parse_milliseconds(written: str | None) -> int:
    """Return a time from our metadata of a text, milliseconds; 0 if `written` is not a time."""
    return int(written) if written and _DIGITS.fullmatch(written) else 0


class RemoteUtterance(NamedTuple):
    """The words of one side.

    Attributes:
        by_person: whether the person said it; if not, the agent did.
        who: the speaker's name.
        text: the words; not blank.
    """

    by_person: bool
    who: str
    text: str


def from_turn(
    event: TurnCompleted, person: str = "User", agent: str = "Assistant"
) -> list[RemoteUtterance]:
    """Return what was said in a turn, without a prompt that the host wrote and not the person.

    Args:
        event: the turn.
        person: the person's name if the event has none.
        agent: the agent's name if the event has none.
    """
    both = (
        RemoteUtterance(True, event.user_name or person, "" if event.synthetic else event.user),
        RemoteUtterance(False, event.assistant_name or agent, event.assistant),
    )
    sent = (RemoteUtterance(one.by_person, sendable(one.who), sendable(one.text)) for one in both)
    return [one for one in sent if one.text.strip()]


def from_delegation(event: Delegated) -> list[RemoteUtterance]:
    """Return what a sub-agent was asked (``Task``) and what it answered (``Result``)."""
    both = (
        RemoteUtterance(False, "Task", sendable(event.task)),
        RemoteUtterance(False, "Result", sendable(event.result)),
    )
    return [one for one in both if one.text.strip()]


def join_lines(utterances: list[RemoteUtterance]) -> str:
    """Return utterances as a text, each on a line that begins with the speaker's name."""
    return "\n".join(f"{utterance.who}: {utterance.text}" for utterance in utterances)


T = TypeVar("T")


def old_text(event: MemoryWritten) -> str:
    """Return the text by which a write identifies an older entry; "" if there is none."""
    return "" if event.action == "add" else sendable(event.old_text).strip()


def replaced_entries(
    event: MemoryWritten, entries: Iterable[T], text_of: Callable[[T], str]
) -> list[T]:
    """Return the entries that contain the old text, if all of them have the same text.

    As in the agent's own stores, none is returned if entries of different texts contain it. The
    same text may be stored several times.
    """
    old = old_text(event)
    found = [entry for entry in entries if old and old in text_of(entry)]
    return found if len({text_of(one) for one in found}) == 1 else []


MAX_NAME_CHARS = 100
"""The most characters of a name, which is what the strictest of the services allows."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE_CHARS = 24


def name_of(*ids: str) -> str:
    """Return the name of a list of ids: the same everywhere, at most `MAX_NAME_CHARS` long."""
    joined = "__".join(map(_single_name, ids))
    if len(joined) <= MAX_NAME_CHARS:
        return joined
    return f"{_readable('-'.join(ids))}_{derived_id('names', *ids)}"


def _single_name(one: str) -> str:
    if _PLAIN.fullmatch(one):
        return one
    return f"{_readable(one)}_{derived_id('name', one)}"


def _readable(text: str) -> str:
    return _UNSAFE.sub("-", text.lower())[:_READABLE_CHARS].strip("-") or "id"
