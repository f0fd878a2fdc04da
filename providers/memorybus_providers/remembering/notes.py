"""Facts that somebody chose to keep: entries of the agent's two stores, and the model's notes.

Kinds: ``memory`` and ``user-store`` (memory writes), ``note`` (the tool). One kind in one scope
holds a text once.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from memorybus.events import StoreName

KINDS: Final[Mapping[StoreName, str]] = MappingProxyType({"memory": "memory", "user": "user-store"})
"""The kind of each store's entries."""

NOTE: Final = "note"
"""The kind that the tool writes: the one kind that events of several keys may write."""


class Note(msgspec.Struct, frozen=True):
    """A fact to keep: what kind, what it says, and how it is filed."""

    kind: str
    content: str
    category: str = ""
    tags: str = ""
