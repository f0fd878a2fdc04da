"""What the golden log holds; it was written once, and its files are what counts.

`python -m helpers.archive.golden_entries DIRECTORY` (with tests/ on the path) writes the entries of
a new one, when the wire format gets a new version; the files of the old ones stay as they are.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from memorybus.events import Envelope, Event, MemoryWritten, Scope, SessionRef, TurnCompleted
from memorybus.wire.codec import Encoder

from helpers.archive.golden_log import Entry, written
from helpers.stories.samples import SAMPLES, envelope

_BEGAN_AT = 1_760_000_000_000
_PLAIN = Encoder(1 << 30)
_PACKING = Encoder(0)
_LONG_TEXT = "The ladder stands behind the shed, and the shed stands behind the house. " * 40
_FOREIGN_LETTERS = "梯子 \N{LADDER} السلم\x00 «échelle» Ω"


class _Stream:
    """One partition as it is written to; entries get ids and numbers as Redis would give them."""

    def __init__(self, partition: int) -> None:
        self.entries: list[Entry] = []
        self._partition = partition
        self._n = 0

    def event(self, body: bytes, name: bytes = b"e") -> None:
        """Append an event's bytes."""
        self._n += 1
        self.raw(b"n", str(self._n).encode(), name, body)

    def raw(self, *fields: bytes) -> None:
        """Append what anybody wrote; it gets no number."""
        ms = _BEGAN_AT + 1_000 * self._partition + 7 * len(self.entries)
        self.entries.append(Entry(self._partition, f"{ms}-0", fields))


def entries() -> Iterator[Entry]:
    """Yield every entry of both partitions."""
    for stream in (_first(), _second()):
        yield from stream.entries


def _first() -> _Stream:
    stream = _Stream(0)
    for number, sample in enumerate(SAMPLES, 1):
        pack = _PACKING if number % 2 else _PLAIN
        stream.event(pack.pack(_body(sample, number)))
    stream.event(_PACKING.pack(_body(TurnCompleted(user="And now?", assistant=_LONG_TEXT), 20)))
    stream.event(_body(TurnCompleted(user="Again.", assistant="Sent twice."), 21), b"r")
    stream.event(_renamed(_body(TurnCompleted(user="a", assistant="b"), 22)))
    stream.event(_of_version(_body(TurnCompleted(user="c", assistant="d"), 23), 2))
    stream.event(b"\x00 no envelope")
    stream.event(_body(TurnCompleted(user="After all that", assistant="a last one."), 24))
    return stream


def _second() -> _Stream:
    stream = _Stream(1)
    for number in range(30, 36):
        turn = TurnCompleted(user=f"Turn {number}?", assistant=_FOREIGN_LETTERS, ordinal=number)
        stream.event(_body(turn, number, session="s-5", user="mallory" if number == 32 else "ann"))
    stream.raw(b"foo", b"bar", b"\xff\xfe", b"\x00")
    origin = {"write_origin": "background_review"}
    note = MemoryWritten(action="add", content="Prefers ash.", provenance=origin)
    stream.event(_body(note, 36, session="s-5"))
    stream.event(_body(TurnCompleted(user="The last?", assistant="Yes."), 37, session="s-5"))
    return stream


def _body(event: Event, number: int, session: str = "s-1", user: str = "ann") -> bytes:
    base: Envelope = envelope(event)
    made = msgspec.structs.replace(
        base,
        id=f"0198f2c4a1b27c3d8e4f5a6b7c8d{number:04x}",
        key=f"session:{session}",
        scope=Scope(agent="gardener", user=user, workspace="home", platform="cli"),
        session=SessionRef(id=session, root=session),
        at=_BEGAN_AT + number,
    )
    return _PLAIN.envelope(made)


def _renamed(body: bytes) -> bytes:
    fields = msgspec.msgpack.decode(body)
    fields["event"] = {"type": "DreamDreamt", "of": ["ladders"], "depth": 3}
    return msgspec.msgpack.encode(fields)


def _of_version(body: bytes, version: int) -> bytes:
    fields = msgspec.msgpack.decode(body)
    fields["event"]["mood"] = "curious"
    return msgspec.msgpack.encode(fields | {"v": version})


if __name__ == "__main__":
    Path(sys.argv[1], "log.jsonl").write_text(written(entries()))
