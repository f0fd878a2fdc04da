"""Encodes envelopes as msgpack, compressed by zstd where it pays, and decodes them.

A stored body is either a msgpack map (the envelope) or a zstd frame of one. The first byte
distinguishes them (RFC 8878, 3.1.1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec
import zstandard

from memorybus.errors import CorruptEnvelope
from memorybus.events import (
    EVENT_TYPES,
    LARGEST_BODY,
    LATEST,
    AnyEvent,
    Envelope,
    Event,
    Scope,
    SessionRef,
    UnknownEvent,
)
from memorybus.msgspec_types import prepared

Fields: TypeAlias = dict[str, Any]
Upcast: TypeAlias = Callable[[Fields], Fields]
Upcasts: TypeAlias = Mapping[tuple[str, int], Upcast]
"""By event type and version, the step that turns the fields into those of the next version."""

UPCASTS: Upcasts = {}


def upcast(fields: Fields, kind: str, found: int, wanted: int, steps: Upcasts) -> Fields:
    """Bring an event's fields from one version to another, one step at a time."""
    current = dict(fields)
    for version in range(found, wanted):
        current = steps[kind, version](current)
    return current


PACKED_MARK = b"\x28"  # the first byte of a zstd frame; no msgpack map begins with it
_MAX_PACKED_SHARE = 0.9
"""A compressed body is stored only if it is smaller than this share of the original."""

_ID_DIGITS = 32
_HEX = "0123456789abcdef"
_ZSTD_LEVEL = 1  # level 3 saves one more per cent on turns and takes a third longer
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_UPCAST_ERRORS = (LookupError, TypeError, ValueError, AttributeError)
"""The errors that an upcast raises if the event has unexpected fields."""

_VERSIONS = range(1, 1 << 31)
"""The versions that an envelope may have; the archive's column for them has 32 bits."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """An envelope whose event is not decoded yet, for events of other versions."""

    id: str
    key: str
    scope: Scope
    session: SessionRef
    at: int
    v: int = 1
    trace: str = ""
    event: msgspec.Raw


class _Traced(msgspec.Struct, frozen=True):
    """The one field of an envelope that names the span that published it."""

    trace: str = ""


_traced = msgspec.msgpack.Decoder(prepared(_Traced))


def trace_of(body: bytes) -> str:
    """Return the traceparent in an envelope's msgpack bytes; "" if there is none."""
    try:
        return _traced.decode(body).trace
    except _DECODE_ERRORS:
        return ""


class Encoder:
    """Writes envelopes. Use one per thread: the zstd context is not shared."""

    def __init__(self, compress_min_bytes: int) -> None:
        self._minimum = compress_min_bytes
        self._msgpack = msgspec.msgpack.Encoder()
        self._zstd = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)

    def envelope(self, envelope: Envelope) -> bytes:
        """Return an envelope's msgpack bytes (`writer` checks what it holds)."""
        return self._msgpack.encode(envelope)

    def pack(self, body: bytes) -> bytes:
        """Return the body as the log stores it: compressed if that saves a tenth."""
        if len(body) < self._minimum:
            return body
        packed = self._zstd.compress(body)
        return packed if len(packed) < len(body) * _MAX_PACKED_SHARE else body


class Decoder:
    """Reads envelopes of every version. Use one per thread."""

    def __init__(
        self, upcasts: Upcasts = UPCASTS, versions: Mapping[str, type[Event]] | None = None
    ) -> None:
        self._upcasts = upcasts
        self._types = versions or {kind.__name__: kind for kind in EVENT_TYPES}
        self._typed = msgspec.msgpack.Decoder(prepared(Envelope))
        self._head = msgspec.msgpack.Decoder(prepared(_Head))
        self._zstd = zstandard.ZstdDecompressor()

    def decode(self, body: bytes) -> Envelope:
        """Return the envelope in `body`; an event of a later release becomes `UnknownEvent`."""
        if body[:1] == PACKED_MARK:
            body = self.unpacked(body)
        try:
            envelope = self._typed.decode(body)
        except msgspec.ValidationError:
            return self._decode_slowly(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CorruptEnvelope(f"not an envelope: {error}") from error
        if envelope.v != envelope.event.version:
            return self._decode_slowly(body)
        if not is_plausible(envelope):
            raise _implausible_error(envelope)
        return envelope

    def decode_all(self, bodies: Sequence[bytes | memoryview]) -> list[Envelope | None]:
        """Return envelopes of this release's versions; None for bodies that need `decode`.

        The bodies must not be packed. Ids and times are not checked: see `are_plausible`. One call
        for many bodies costs less than a call for each.
        """
        decode = self._typed.decode
        try:
            envelopes = [decode(body) for body in bodies]
        except _DECODE_ERRORS:
            return [self._current(body) for body in bodies]
        for envelope in envelopes:
            if envelope.v != envelope.event.version:
                return [one if one.v == one.event.version else None for one in envelopes]
        return cast("list[Envelope | None]", envelopes)

    def _current(self, body: bytes | memoryview) -> Envelope | None:
        try:
            envelope = self._typed.decode(body)
        except _DECODE_ERRORS:
            return None
        return envelope if envelope.v == envelope.event.version else None

    def unpacked(self, body: bytes) -> bytes:
        """Return a stored body's msgpack bytes; the size is checked before zstd allocates."""
        if body[:1] != PACKED_MARK:
            return body
        try:
            frame = zstandard.get_frame_parameters(body)
            if max(frame.content_size, frame.window_size) > LARGEST_BODY:
                raise CorruptEnvelope(f"a zstd frame that claims {frame.content_size} bytes")
            return self._zstd.decompress(body, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise CorruptEnvelope(f"damaged zstd frame: {error}") from error

    def _decode_slowly(self, raw: bytes) -> Envelope:
        try:
            head = self._head.decode(raw)
            if head.v not in _VERSIONS:
                raise CorruptEnvelope(f"version {head.v} is out of bounds")
            event = self._event(head)
        except _DECODE_ERRORS as error:
            raise CorruptEnvelope(f"not an envelope: {error}") from error
        envelope = Envelope(
            id=head.id,
            key=head.key,
            scope=head.scope,
            session=head.session,
            at=head.at,
            v=head.v,
            trace=head.trace,
            event=event,
        )
        if not is_plausible(envelope):
            raise _implausible_error(envelope)
        return envelope

    def _event(self, head: _Head) -> AnyEvent:
        fields = msgspec.msgpack.decode(head.event, type=dict)
        name = str(fields.pop("type", ""))
        kind = self._types.get(name)
        if kind is None or head.v > kind.version:
            return UnknownEvent(name=name, wire_version=head.v, raw=bytes(head.event))
        try:
            current = upcast(fields, name, head.v, kind.version, self._upcasts)
        except _UPCAST_ERRORS as error:
            raise CorruptEnvelope(f"{name} of version {head.v}: {error!r}") from error
        return cast("AnyEvent", msgspec.convert(current, prepared(kind)))


def are_plausible(envelopes: Sequence[Envelope]) -> bool:
    """Return whether the ids and times of all envelopes have the form that our publishers write."""
    ids = [envelope.id for envelope in envelopes]
    times = [envelope.at for envelope in envelopes]
    if not envelopes:
        return True
    if set(map(len, ids)) != {_ID_DIGITS} or min(times) < 0 or max(times) > LATEST:
        return False
    digits = "".join(ids)
    try:
        return bytes.fromhex(digits).hex() == digits
    except ValueError:
        return False


def is_plausible(envelope: Envelope) -> bool:
    """Whether id and time have the form that our publishers write; stores rely on this form."""
    digits = envelope.id
    return len(digits) == _ID_DIGITS and not digits.strip(_HEX) and 0 <= envelope.at <= LATEST


def _implausible_error(envelope: Envelope) -> CorruptEnvelope:
    """Return the error for an id that is not 32 lower-case hex digits, or for a bad time."""
    if 0 <= envelope.at <= LATEST:
        return CorruptEnvelope(f"event id {envelope.id[:40]!r} is not 32 hex digits")
    return CorruptEnvelope(f"time {envelope.at} is out of bounds")
