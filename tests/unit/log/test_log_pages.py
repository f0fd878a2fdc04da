"""A page of the log decoded as a whole says what each entry decoded by itself says."""

from collections.abc import Callable
from unittest import mock

import fakeredis
import msgspec
import zstandard
from helpers.archive.past import envelope
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Envelope, TurnCompleted
from memorybus.history import log_reader
from memorybus.history.log_reader import LogReader
from memorybus.log.entry import decode_entry
from memorybus.query.filter import EventFilter
from memorybus.query.ranges import WHOLE
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Decoder, Encoder

SOUND = envelope(1, "ada", TurnCompleted(user="hello", assistant="hi"))
OTHERS: list[Envelope] = [
    msgspec.structs.replace(SOUND, id="0" * 31 + "G"),
    msgspec.structs.replace(SOUND, id="A" * 32),
    msgspec.structs.replace(SOUND, id="0" * 30),
    msgspec.structs.replace(SOUND, at=-1),
    msgspec.structs.replace(SOUND, at=1 << 60),
    msgspec.structs.replace(SOUND, v=9),
]
BODY = Encoder(1 << 20).envelope(SOUND)
BODIES = [
    *[Encoder(1 << 20).envelope(one) for one in OTHERS],
    b"",
    b"\x28garbage",
    b"no envelope",
    zstandard.ZstdCompressor().compress(BODY),
]
Fields = Callable[[int], list[bytes]]

KINDS: list[Fields] = [
    lambda n: [b"n", b"%d" % n, b"r", BODY],
    lambda n: [b"n", b"%d" % (n + 1), b"e", BODY],
    lambda n: [b"n", b"+%d" % n, b"e", BODY],
    lambda n: [b"N", b"%d" % n, b"e", BODY],
    lambda n: [b"n", b"%d" % n, b"x", BODY],
    lambda n: [b"note", b"by a stranger"],
    *[lambda n, body=body: [b"n", b"%d" % n, b"e", body] for body in BODIES],
]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(KINDS)), max_size=4))
def test_a_page_is_what_its_entries_are(odd):
    """Whatever stands in a page, each event is as if it had been decoded alone."""
    page = [[b"n", b"%d" % n, b"e", BODY] for n in range(1, 6)]
    for place, fields in odd:
        page[place] = fields(place + 1)
    entries = [(b"1700000000000-%d" % place, fields) for place, fields in enumerate(page)]
    with mock.patch.object(log_reader, "read_entries", return_value=entries):
        redis = fakeredis.FakeRedis()
        found = LogReader(redis, Keys("t")).read(3, "0-0", 9, EventFilter(WHOLE, 3)).events
    decoder = Decoder()
    alone = (decode_entry(3, entry.decode(), fields, decoder) for entry, fields in entries)
    assert found == [event for event in alone if event is not None]
