"""What reading the past costs without the bus, as a process of its own.

``--socket S --streams "…"``: plain XRANGE, 500 entries at a time, one stream after the other, zstd
where an entry is compressed, msgspec into the bus's own structs. ``--parquet FILE…``: the column of
envelopes of the very segments that the archive has, a row group at a time, msgspec into the same
structs. Neither checks anything: no sums, no numbers, no tombstones; nothing is applied.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import zstandard
from memorybus.events import Envelope
from redis import Redis

BATCH = 500
ZSTD_FIRST_BYTE = 0x28

Bodies = Iterator[list[bytes]]


def of_streams(redis: Redis, streams: Sequence[str]) -> Bodies:
    """Yield the bodies of every stream, a batch at a time."""
    unpack = zstandard.ZstdDecompressor().decompress
    untyped: Any = redis
    for stream in streams:
        after = "-"
        while entries := untyped.execute_command(b"XRANGE", stream, after, "+", "COUNT", BATCH):
            bodies = [fields[3] for _, fields in entries]
            yield [unpack(b) if b[0] == ZSTD_FIRST_BYTE else b for b in bodies]
            after = f"({entries[-1][0].decode()}"


def of_segments(files: Sequence[str]) -> Bodies:
    """Yield the envelopes of every Parquet file, a row group at a time."""
    from pyarrow import parquet

    for path in files:
        with parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=["envelope"]).column(0).to_pylist()


def read(bodies: Bodies) -> tuple[int, float]:
    """Decode everything; return (events, seconds)."""
    decode = msgspec.msgpack.Decoder(Envelope).decode
    total, began = 0, time.perf_counter()
    for batch in bodies:
        total += len([decode(body) for body in batch if body is not None])
    return total, time.perf_counter() - began


def main() -> None:
    """Read once and print {"events", "seconds"} as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket")
    parser.add_argument("--group", help="not used; `floor_runs` gives it to every floor")
    parser.add_argument("--streams", default="", help="separated by spaces")
    parser.add_argument("--parquet", nargs="*", help="segments")
    options = parser.parse_args()
    if options.parquet:
        import pyarrow.parquet  # noqa: F401  # loading it is no part of the reading

        bodies = of_segments(options.parquet)
    else:
        redis = Redis(unix_socket_path=options.socket, protocol=2, single_connection_client=True)
        bodies = of_streams(redis, options.streams.split())
    events, seconds = read(bodies)
    json.dump({"events": events, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
