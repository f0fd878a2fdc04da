"""The hand-written consumer that keeps order per key and calls a slow backend in parallel.

One process: the main thread reads all its streams with XREADGROUP and acknowledges, a pool of
threads takes one key each and works off its events in order. It keeps no order across a takeover,
no lease, no checkpoint; a crash gives everything not yet acknowledged again.
"""

import argparse
import json
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from memorybus.events import Envelope
from redis import Redis

from providers import SLOW_SECONDS

_COUNT = 500
_MAX_UNACKNOWLEDGED = 4_000
"""Events read and not yet acknowledged."""

Item = tuple[bytes, bytes]
"""Stream and entry id."""


class Lanes:
    """Keys in parallel, each key in order."""

    def __init__(self, threads: int) -> None:
        """Start no thread yet."""
        self._pool = ThreadPoolExecutor(threads)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Item]] = {}
        self._done: deque[Item] = deque()

    def put(self, key: str, item: Item) -> None:
        """Queue an event behind those of its key."""
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(item)
                return
            self._waiting[key] = deque([item])
        self._pool.submit(self._run, key)

    def _run(self, key: str) -> None:
        while True:
            with self._lock:
                if not self._waiting[key]:
                    del self._waiting[key]
                    return
                item = self._waiting[key].popleft()
            time.sleep(SLOW_SECONDS)
            self._done.append(item)

    def taken_done(self) -> dict[bytes, list[bytes]]:
        """Return what was done since the last call, by stream."""
        by_stream: dict[bytes, list[bytes]] = {}
        while self._done:
            stream, entry = self._done.popleft()
            by_stream.setdefault(stream, []).append(entry)
        return by_stream


def drain(redis: Redis, streams: list[str], group: str, threads: int) -> tuple[int, float]:
    """Consume every stream to its end; return (events, seconds)."""
    decode = msgspec.msgpack.Decoder(Envelope).decode
    lanes = Lanes(threads)
    read = done = 0
    at_end = False
    began = time.perf_counter()
    while done < read or not at_end:
        reply: Any = None
        if not at_end and read - done < _MAX_UNACKNOWLEDGED:
            reply = redis.xreadgroup(group, "floor", dict.fromkeys(streams, ">"), count=_COUNT)
            at_end = not reply
        for stream, entries in reply or ():
            read += len(entries)
            for entry, fields in entries:
                lanes.put(decode(fields[b"e"]).key, (stream, entry))
        for stream, ids in lanes.taken_done().items():
            redis.xack(stream, group, *ids)
            done += len(ids)
        if not reply:
            time.sleep(0.002)
    return done, time.perf_counter() - began


def main() -> None:
    """Drain once and print {"events", "seconds"} as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--streams", required=True, help="separated by spaces")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    redis = Redis(unix_socket_path=options.socket, protocol=2, single_connection_client=True)
    streams = options.streams.split()
    events, seconds = drain(redis, streams, options.group, options.threads)
    json.dump({"events": events, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
