"""Reads the values of an event that a query compares, without decoding the rest of its bytes."""

from types import MappingProxyType
from typing import Any

import msgspec

from memorybus.errors import CorruptEnvelope
from memorybus.events import EVENT_TYPES, MemoryWritten, Scope
from memorybus.msgspec_types import prepared
from memorybus.query.query import ORIGIN, EventRow
from memorybus.wire.codec import Decoder

_VERSIONS = MappingProxyType({kind.__name__: kind.version for kind in EVENT_TYPES})


class _Session(msgspec.Struct, frozen=True):
    id: str


class _Event(msgspec.Struct, frozen=True):
    type: str
    provenance: Any = None


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    scope: Scope
    session: _Session
    at: int = 0
    v: int = 1
    event: _Event


class HeaderReader:
    """Reads the headers of stored bodies as rows. Use one per thread."""

    def __init__(self, decoder: Decoder) -> None:
        self._unpacked = decoder.unpacked
        self._head = msgspec.msgpack.Decoder(prepared(_Head))

    def row(self, body: bytes) -> EventRow | None:
        """Return the values that a query compares; None if the whole event has to be decoded."""
        try:
            head = self._head.decode(self._unpacked(body))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, CorruptEnvelope):
            return None
        if not 1 <= head.v <= _VERSIONS.get(head.event.type, 0):
            return None
        scope = head.scope
        return EventRow(
            head.id,
            head.session.id,
            head.event.type,
            scope.agent,
            scope.user,
            scope.workspace,
            scope.platform,
            _origin(head.event),
            head.at,
        )


def _origin(event: _Event) -> str:
    if event.type != MemoryWritten.__name__ or not isinstance(event.provenance, dict):
        return ""
    return str(event.provenance.get(ORIGIN, ""))
