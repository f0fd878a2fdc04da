"""Spools by hand: filled, left, damaged; and what the log has of them."""

import random
import sqlite3
from pathlib import Path

import redis
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.ids import new_id
from memorybus.outbox.files import SpoolFiles, inspect_spool
from memorybus.outbox.producers import read_taken_sequences
from memorybus.outbox.spool import Spool
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

PAGE = 8_192


def files_of(settings: Settings, clock: Clock = SYSTEM) -> SpoolFiles:
    """Return the spools that these settings name."""
    return SpoolFiles.from_settings(settings, new_id, clock)


def put(spool: Spool, number: int, size: int = 100) -> int:
    """Append an event whose id is its number to the first partition."""
    return spool.append(0, number.to_bytes(16, "big"), b"d" * 8, b"%d" % number + b"x" * size)


def numbers_in(spool: Spool) -> list[int]:
    """Return the numbers of the events in a spool, in order."""
    return [int.from_bytes(row[2], "big") for row in spool.rows_after(0, 1_000_000, 1 << 40)]


def numbers_logged(client: redis.Redis, settings: Settings) -> list[int]:
    """Return the numbers of the events in the first partition, in order."""
    found = client.xrange(Keys(settings.namespace).log(0))
    bodies = [fields.get(b"e") or fields[b"r"] for _, fields in found]
    return [int(body.rstrip(b"x")) for body in bodies]


def abandoned(settings: Settings, count: int, size: int = 100, clock: Clock = SYSTEM) -> Path:
    """Leave a spool with so many events, as its owner's death does."""
    spool = files_of(settings, clock).claim()
    for number in range(count):
        put(spool, number, size)
    spool.close()
    return spool.path


def left_unsent(settings: Settings) -> int:
    """Return how many events Redis has not taken, of spools whose owner has ended."""
    client, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        return sum(
            inspect_spool(
                path, read_taken_sequences(client, keys, settings.partitions, path.stem)
            ).events
            for path in settings.spool_dir.glob("*.db")
        )
    finally:
        client.close()


def damage(path: Path) -> None:
    """Overwrite a page in the middle of a spool without an owner."""
    db = sqlite3.connect(path)
    db.execute("pragma wal_checkpoint(truncate)").fetchall()
    db.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // PAGE * PAGE)
        file.write(random.Random(1).randbytes(PAGE))
