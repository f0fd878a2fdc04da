"""The hand-written consumer that a drain is compared with, as a process of its own.

It does what a careful programmer writes without the bus, in the worker's shape (one process, one
thread, one stream after the other, up to 500 entries at a time): XREADGROUP, unpack zstd where the
entry is compressed, decode into the same msgspec structs, apply, one XACK per batch. It keeps no
order across a takeover, no dedupe, no fence, no checkpoint. Its client has the bus's options
(unix socket, RESP2, one connection); its group exists beforehand.

``noop`` applies nothing; ``row`` writes each batch's turns in one SQLite transaction.
"""

import argparse
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import zstandard
from memorybus.events import Envelope, TurnCompleted
from redis import Redis

from providers import INSERT, connect

BATCH = 500
ZSTD_FIRST_BYTE = 0x28

ApplyBatch = Callable[[Sequence[Envelope]], None]


def drain(redis: Redis, streams: Sequence[str], group: str, apply: ApplyBatch) -> tuple[int, float]:
    """Consume every stream to its end; return (events, seconds)."""
    decode = msgspec.msgpack.Decoder(Envelope).decode
    unpack = zstandard.ZstdDecompressor().decompress
    total, left = 0, list(streams)
    began = time.perf_counter()
    while left:
        for stream in list(left):
            reply: Any = redis.xreadgroup(group, "floor", {stream: ">"}, count=BATCH)
            entries = reply[0][1] if reply else []
            if not entries:
                left.remove(stream)
                continue
            bodies = [fields[b"e"] for _, fields in entries]
            apply([decode(unpack(b) if b[0] == ZSTD_FIRST_BYTE else b) for b in bodies])
            redis.xack(stream, group, *[entry for entry, _ in entries])
            total += len(entries)
            if len(entries) < BATCH:
                left.remove(stream)
    return total, time.perf_counter() - began


def nothing(envelopes: Sequence[Envelope]) -> None:
    """Apply nothing."""


def rows(db: sqlite3.Connection) -> ApplyBatch:
    """Return what writes a batch's turns in one transaction."""

    def apply(envelopes: Sequence[Envelope]) -> None:
        db.execute("begin immediate")
        db.executemany(INSERT, [_row(one) for one in envelopes if _is_turn(one)])
        db.execute("commit")

    return apply


def _is_turn(envelope: Envelope) -> bool:
    return isinstance(envelope.event, TurnCompleted)


def _row(envelope: Envelope) -> tuple[bytes, str, int, str, str]:
    turn: Any = envelope.event
    return (
        bytes.fromhex(envelope.id),
        envelope.session.id,
        envelope.at,
        turn.user,
        turn.assistant,
    )


def main() -> None:
    """Drain once and print {"events", "seconds"} as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--streams", required=True, help="separated by spaces")
    parser.add_argument("--database", help="write rows into it; without, apply nothing")
    options = parser.parse_args()
    redis = Redis(unix_socket_path=options.socket, protocol=2, single_connection_client=True)
    apply = rows(connect(options.database)) if options.database else nothing
    events, seconds = drain(redis, options.streams.split(), options.group, apply)
    json.dump({"events": events, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
