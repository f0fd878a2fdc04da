"""Which entries of a store a write takes the place of; pure."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from memorybus.events import MemoryWritten

from memorybus_providers.remote.texts import sendable

T = TypeVar("T")


def old_text(event: MemoryWritten) -> str:
    """Return the text by which a write names an older entry; "" if it names none."""
    return "" if event.action == "add" else sendable(event.old_text).strip()


def replaced(event: MemoryWritten, held: Iterable[T], text_of: Callable[[T], str]) -> list[T]:
    """Return the entries in which the old text stands, if they are one text.

    As in the agent's own stores: where several different ones are meant, none is touched; one text
    may be there several times.
    """
    old = old_text(event)
    meant = [one for one in held if old and old in text_of(one)]
    return meant if len({text_of(one) for one in meant}) == 1 else []
