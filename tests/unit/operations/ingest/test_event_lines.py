"""Events as lines of JSON: the same event comes back, or the line is refused with its place."""

import gc
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memorybus.errors import CorruptEnvelope
from memorybus.events import (
    EVENT_TYPES,
    Envelope,
    Event,
    MemoryWritten,
    Scope,
    SessionRef,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    UnknownEvent,
)
from memorybus_console.operations.ingest.files import EventLines, events_of, holds_events
from memorybus_console.operations.ingest.reading.model import TranscriptError

LINES = EventLines()


def enveloped(event: Event, **more: Any) -> Envelope:
    """Return an event of ann's in its envelope."""
    fields: dict[str, Any] = {
        "id": "0" * 31 + "a",
        "key": "session:0:s",
        "scope": Scope(agent="pilot", user="ann", platform="cli"),
        "session": SessionRef(id="s", root="r", parent="p", epoch=2),
        "at": 1_700_000_000_123,
        "event": event,
    }
    return Envelope(**(fields | more))


HARD = [
    TurnCompleted(user="Grüße\u2028\u202e 日本", assistant='"\\\n\x07', ordinal=3),
    TurnCompleted(messages=({"role": "tool", "n": 2**64 - 1, "x": [-0.1, None, {"": []}]},)),
    MemoryWritten(action="replace", store="user", content="b", old_text="a", provenance={"o": "x"}),
    SessionSwitched(new_id="s", reason="rewind", rewound=True, retracted=("0" * 32,)),
    ToolCalled(provider="p", tool="t", arguments={"deep": {"er": [1.5, True]}}),
]


@pytest.mark.parametrize("event", HARD, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event):
    """A line makes the same event, id, time, order key and scope, whatever the texts hold."""
    envelope = enveloped(event, trace="00-ab-cd-01")
    line = LINES.encode(envelope)
    assert b"\n" not in line
    assert LINES.decode(line) == envelope


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_type_has_a_line(kind):
    """Every event type that is published can be exported."""
    needed = {"new_id": "n", "provider": "p", "tool": "t", "event_id": "0" * 32, "action": "add"}
    needed |= {"act": "pause provider", "operator": "ann"}
    needed |= {"kind": "fact", "text": "x", "memory": "m", "before": "active", "after": "archived"}
    if kind.__name__ == "DeadLetterResolved":
        needed["action"] = "discard"
    names = {field.name for field in msgspec.structs.fields(kind) if field.required}
    envelope = enveloped(kind(**{name: needed[name] for name in names}))
    assert LINES.decode(LINES.encode(envelope)) == envelope


def test_an_event_of_a_later_release_is_written_as_that_release_would():
    """A line tells what is inside an unknown event, so that a release that knows it reads it."""
    raw = msgspec.msgpack.encode({"type": "Dreamed", "of": "sheep"})
    envelope = enveloped(UnknownEvent(name="Dreamed", wire_version=2, raw=raw), v=2)
    line = LINES.encode(envelope)
    assert json.loads(line)["event"] == {"type": "Dreamed", "of": "sheep"}
    assert LINES.decode(line) == envelope


@pytest.mark.parametrize(
    "event",
    [
        UnknownEvent(name="?", wire_version=0, raw=b"\xc1 damaged"),
        TurnCompleted(messages=({"n": float("nan")},)),
        TurnCompleted(messages=({"b": b"bytes"},)),
    ],
    ids=["damaged", "nan", "bytes"],
)
def test_what_json_cannot_hold_is_refused_not_changed(event):
    """An event that would come back as another is not written."""
    with pytest.raises(ValueError, match="JSON cannot hold it"):
        LINES.encode(enveloped(event))


def _as_utf16(data: bytes) -> bytes:
    return data.decode().encode("utf-16")


FINE = json.loads(LINES.encode(enveloped(TurnCompleted(user="a"))))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{oops", "not JSON"),
        ('"text"', "not an envelope"),
        (json.dumps(FINE | {"id": "short"}), "32 hex digits"),
        (json.dumps(FINE | {"at": -1}), "out of bounds"),
        (json.dumps(FINE | {"event": {"type": "TurnCompleted", "user": 7}}), "not an envelope"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(line, why, tmp_path):
    """A line that is no event is named by file and number."""
    path = tmp_path / "e.jsonl"
    path.write_text(json.dumps(FINE) + "\n\n" + line + "\n")
    with pytest.raises(TranscriptError, match=rf"e\.jsonl:3: .*{why}"):
        list(events_of(path))


def test_lines_tell_themselves_from_messages(tmp_path):
    """A file is one of events if its first line is one; a conversation and a pipe are none."""
    events, talk = tmp_path / "e.jsonl", tmp_path / "t.jsonl"
    events.write_text(json.dumps(FINE) + "\n{oops\n")
    talk.write_text('{"role": "user", "content": "hi", "id": "x"}\n')
    assert holds_events(events)
    assert not any(map(holds_events, (talk, tmp_path, tmp_path / "none", Path("/dev/null"))))


@pytest.mark.parametrize("pack", [gzip.compress, b"\xef\xbb\xbf".__add__, _as_utf16])
def test_a_packed_file_of_events_is_one_of_events(pack, tmp_path):
    """An export that was compressed, or saved by an editor, has the same events."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(pack(json.dumps(FINE).encode() + b"\n"))
    assert holds_events(path)
    assert [one.id for one in events_of(path)] == [FINE["id"]]


def test_a_version_that_nothing_writes_is_refused():
    """What the log's own decoder refuses is refused here, too."""
    with pytest.raises(CorruptEnvelope, match="out of bounds"):
        LINES.decode(json.dumps(FINE | {"v": 0}).encode())


@pytest.mark.slow(reason="writes a long file")
def test_a_long_file_is_not_held_in_memory(tmp_path):
    """G10: events are written and read one by one, however many they are."""
    path = tmp_path / "e.jsonl"
    event = enveloped(TurnCompleted(user="word " * 200))
    with path.open("wb") as file:
        for _ in range(5_000):
            file.write(LINES.encode(event) + b"\n")
    gc.collect()
    tracemalloc.start()
    count = sum(1 for _ in events_of(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000
    assert path.stat().st_size > 5_000_000
    assert peak < 500_000
