"""Decides which entries of a store a write replaces or removes; pure."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from memorybus.events import MemoryWritten

from memorybus_providers.remote.texts import sendable

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
    found = [one for one in entries if old and old in text_of(one)]
    return found if len({text_of(one) for one in found}) == 1 else []
