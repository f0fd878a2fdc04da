"""The wire contract: bytes of every version ever written stay readable."""

import tracemalloc
from pathlib import Path

import msgspec
import pytest
from helpers.redis.unreadable import UNREADABLE, bomb, envelope_bytes
from helpers.stories.samples import SAMPLES, envelope
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import CorruptEnvelope
from memorybus.events import (
    EVENT_TYPES,
    LARGEST_BODY,
    LATEST,
    Envelope,
    Event,
    Scope,
    SessionRef,
    TurnCompleted,
    UnknownEvent,
)
from memorybus.wire.codec import UPCASTS, Decoder, Encoder, upcast

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = [type(event).__name__ for event in SAMPLES]
texts = st.text(st.characters(codec="utf-8"))


def test_every_event_type_has_a_sample():
    """Every type of event is in the golden files, each once."""
    assert sorted(NAMES) == sorted(kind.__name__ for kind in EVENT_TYPES)


@pytest.mark.parametrize("event", SAMPLES, ids=NAMES)
def test_golden_bytes_are_what_this_release_writes(event):
    """An event's bytes of its present version never change."""
    golden = (GOLDEN / f"v{event.version}" / f"{type(event).__name__}.msgpack").read_bytes()
    assert Encoder(0).envelope(envelope(event)) == golden


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("v*/*.msgpack")), ids=lambda p: p.stem)
def test_golden_bytes_of_every_version_are_read(path):
    """Bytes of every version ever written decode to the event as it is meant today."""
    sample = next(event for event in SAMPLES if type(event).__name__ == path.stem)
    assert Decoder().decode(path.read_bytes()) == envelope(sample)


@given(user=texts, assistant=texts, session=texts, at=st.integers(0, LATEST))
def test_round_trip(user, assistant, session, at):
    """Any event comes out as it went in, compressed or not."""
    one = Envelope(
        id="ab" * 16,
        key=f"session:{session}",
        scope=Scope(),
        session=SessionRef(id=session, root=session),
        at=at,
        event=TurnCompleted(user=user, assistant=assistant),
    )
    for minimum in (0, 1 << 30):
        encoder = Encoder(minimum)
        assert Decoder().decode(encoder.pack(encoder.envelope(one))) == one


def test_compression_only_where_it_pays():
    """A body is stored compressed if that saves a tenth, else as it is."""
    encoder = Encoder(512)
    dull = b"\x81" + b"the same again " * 200
    assert len(encoder.pack(dull)) < len(dull) / 10
    noise = bytes(range(256)) * 3
    short = b"tiny"
    assert encoder.pack(short) is short
    assert len(encoder.pack(noise)) <= len(noise)


@given(st.binary(max_size=400))
def test_garbage_is_refused_by_name(body):
    """Bytes that are no envelope raise `CorruptEnvelope`, whatever they are."""
    try:
        decoded = Decoder().decode(body)
    except CorruptEnvelope:
        return
    assert isinstance(decoded, Envelope)


@pytest.mark.parametrize("cut", [1, 10, 40, 80])
def test_truncated_frames_are_refused(cut):
    """A damaged compressed body raises `CorruptEnvelope`."""
    encoder = Encoder(0)
    body = encoder.pack(encoder.envelope(envelope(TurnCompleted(user="ladder " * 90))))
    with pytest.raises(CorruptEnvelope):
        Decoder().decode(body[:-cut])


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=list(UNREADABLE))
def test_bytes_that_are_no_envelope_are_one_error(body):
    """G6: however bytes fail to become an envelope, it is `CorruptEnvelope`, which is parked."""
    with pytest.raises(CorruptEnvelope):
        Decoder().decode(body)


def _peak(body: bytes) -> int:
    """Return the most memory that decoding a body takes, bytes."""
    decoder = Decoder()
    tracemalloc.start()
    try:
        with pytest.raises(CorruptEnvelope):
            decoder.decode(body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [name for name in UNREADABLE if "bomb" in name or "TiB" in name])
def test_a_frame_too_large_costs_nothing(name):
    """G10: a frame that claims too much, or does not say how much, is not unpacked at all."""
    assert _peak(UNREADABLE[name]) < 1 << 20


def test_a_frame_within_the_bound_costs_no_more_than_the_bound():
    """G10: to find out that a frame is no envelope takes at most what the largest one takes."""
    size = LARGEST_BODY
    assert size <= _peak(bomb(size)) < size + (1 << 20)


@pytest.mark.parametrize("name", ["Omitted", "UnknownEvent"])
def test_what_only_readers_make_is_unknown_on_the_wire(name):
    """G6: an entry that says it is left out, or unknown, is parked like any unknown type."""
    event = {"type": name, "why": "filtered", "name": "x", "wire_version": 0, "raw": b""}
    decoder = Decoder()
    for v in (1, 7):
        body = envelope_bytes(event, v=v)
        found = decoder.decode(body).event
        assert isinstance(found, UnknownEvent)
        assert (found.name, found.wire_version) == (name, v)
        assert decoder.decode_all([body]) == [None]


def _raw(event: dict[str, object], v: int = 1) -> bytes:
    fields = {"id": "ab" * 16, "key": "session:s", "scope": {}, "at": 1, "v": v, "event": event}
    return msgspec.msgpack.encode(fields | {"session": {"id": "s", "root": "s"}})


def test_unknown_type_is_kept_whole():
    """An event of an unknown type comes as `UnknownEvent` with its bytes, to be parked (G6)."""
    event = {"type": "DreamDreamt", "about": "sheep"}
    found = Decoder().decode(_raw(event, v=3)).event
    assert isinstance(found, UnknownEvent)
    assert (found.name, found.wire_version) == ("DreamDreamt", 3)
    assert msgspec.msgpack.decode(found.raw) == event


def test_newer_version_is_kept_whole():
    """An event of a newer version than this release knows is not guessed at (G6)."""
    found = Decoder().decode(_raw({"type": "TurnCompleted", "user": "x"}, v=99)).event
    assert isinstance(found, UnknownEvent)
    assert found.wire_version == 99


def test_unknown_fields_are_ignored():
    """A field that a newer release added with a default does not stop an older one."""
    found = Decoder().decode(_raw({"type": "TurnStarted", "number": 2, "mood": "fine"})).event
    assert getattr(found, "number", None) == 2


class Renamed(Event, frozen=True, kw_only=True, tag="Renamed"):
    """An event in its third version, for the test of upcasts."""

    version = 3
    text: str = ""


STEPS = {
    ("Renamed", 1): lambda fields: {"body": fields["msg"]},
    ("Renamed", 2): lambda fields: {"text": fields["body"].upper()},
}


@pytest.mark.parametrize(
    ("v", "fields"), [(1, {"msg": "hi"}), (2, {"body": "hi"}), (3, {"text": "HI"})]
)
def test_upcasts_go_one_step_at_a_time(v, fields):
    """Old fields pass through every step between their version and the present one."""
    assert upcast(fields, "Renamed", v, 3, STEPS) == {"text": "HI"}


def test_an_old_event_that_trips_a_step_is_corrupt():
    """G6: fields that an upcast cannot read are corrupt bytes, not a failure of the reader."""
    decoder = Decoder(STEPS, {"Renamed": Renamed})
    for event in ({"type": "Renamed"}, {"type": "Renamed", "msg": 7}):
        with pytest.raises(CorruptEnvelope):
            decoder.decode(_raw(event))


def test_every_old_version_has_its_steps():
    """No released version lacks the step that makes it one newer."""
    for kind in EVENT_TYPES:
        for version in range(1, kind.version):
            assert (kind.__name__, version) in UPCASTS
