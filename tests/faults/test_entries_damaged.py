"""Entries whose bytes are damaged: each bit of them, and whatever chance finds besides (G6)."""

import tracemalloc
from itertools import chain, islice

import msgspec
import pytest
from helpers.faults.scale import QUICK, chances
from helpers.redis import mutants
from memorybus.archive.format.parquet import RawEntry, segment_row
from memorybus.errors import CorruptEnvelope
from memorybus.events import LARGEST_BODY, Envelope, Position, UnknownEvent
from memorybus.log.entry import DAMAGED_PREFIX, LoggedEvent
from memorybus.wire.codec import Decoder
from memorybus.wire.header import HeaderReader
from memorybus_console.views.events import event_line, placed
from memorybus_console.views.render import json_text

STEP = 20 if QUICK else 1
"""Of each entry, every bit is turned, or one of so many."""

CASES = 2_000 if QUICK else 60_000
"""Random changes besides."""

SPARE = 8 << 20
"""Bytes that reading one entry may take beside the largest body."""


def read_everywhere(body: bytes, decoder: Decoder) -> bool:
    """Read a body as lanes, listings and the archive do; return whether it is an envelope."""
    try:
        known: Envelope | None = decoder.decode(body)
    except CorruptEnvelope:
        known = None
    raw = RawEntry("1760000000000-0", 7, (b"n", b"7", b"e", body))
    line = segment_row(0, raw, decoder)
    HeaderReader(decoder).row(body)
    if known is None:
        assert line.kind == "stray", "the archive keeps the bytes as they are"
        assert body in (line.envelope or b"")
        return False
    event = LoggedEvent(Position(0, raw.entry, raw.n), known)
    json_text(msgspec.to_builtins(placed(event)))
    event_line(known)
    damaged = isinstance(known.event, UnknownEvent) and known.event.wire_version == 0
    assert not damaged, f"what is known does not count as {DAMAGED_PREFIX}"
    return True


@pytest.mark.fault
@pytest.mark.timeout(1_200)
def test_damaged_bytes_are_an_envelope_or_corrupt(report):
    """G6, G10: whatever happens to an entry's bytes, they are an envelope or `CorruptEnvelope`."""
    bodies = mutants.entries()
    decoder = Decoder()
    assert all(read_everywhere(body, decoder) for body in bodies)
    turned = islice(chain.from_iterable(map(mutants.turned, bodies)), 0, None, STEP)
    changed = islice(mutants.mutated(chances("bytes"), bodies), CASES)
    cases = corrupt = 0
    tracemalloc.start()
    try:
        for body in chain(turned, changed):
            cases += 1
            corrupt += not read_everywhere(body, decoder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    report(cases=cases, envelopes=cases - corrupt, corrupt=corrupt, peak_bytes=peak)
    assert peak < LARGEST_BODY + SPARE
    assert 0 < corrupt < cases
