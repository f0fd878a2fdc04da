"""Facts that somebody chose to keep: entries of the agent's two stores, and the model's notes.

Kinds: ``memory`` and ``user-store`` (memory writes), ``note`` (the tool), ``fact`` (a deriver). In
    one scope, each text exists once for each kind.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from memorybus.events import StoreName

from memorybus_providers.ranking.facts import CONCLUSION

KINDS: Final[Mapping[StoreName, str]] = MappingProxyType({"memory": "memory", "user": "user-store"})
"""The kind of each store's entries."""

NOTE: Final = "note"  # the kind that the tool writes

SAID_BY_EVENTS: Final = frozenset({NOTE, CONCLUSION})
"""The kinds that events of several keys may write."""


class EndedEntry(msgspec.Struct, frozen=True):
    """An entry of a store that was removed: the row of its scope, and the event that wrote it."""

    scope: int
    event: str


class Note(msgspec.Struct, frozen=True):
    """A fact to keep: its kind, its text, and its category and tags."""

    kind: str
    content: str
    category: str = ""
    tags: str = ""
