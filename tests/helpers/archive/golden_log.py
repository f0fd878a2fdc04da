"""A log as a release left it: its entries in a file, put into a Redis with the ids they had."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import redis
from memorybus.events import Omitted, UnknownEvent
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import Keys

PARTITIONS = 2


class Entry(msgspec.Struct, frozen=True):
    """An entry of a stream: its partition, its id, and its names and values by turns."""

    partition: int
    entry: str
    fields: tuple[bytes, ...]


def written(entries: Iterable[Entry]) -> str:
    """Return entries as lines of JSON; names and values in base64."""
    return "".join(msgspec.json.encode(entry).decode() + "\n" for entry in entries)


def stored(path: Path) -> list[Entry]:
    """Read entries as `written` wrote them."""
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()]


def restore(
    client: redis.Redis,
    keys: Keys,
    log_id: str,
    entries: Iterable[Entry],
    heads: Mapping[int, Mapping[str, int]],
) -> None:
    """Write a log: its certificate, its entries, each partition's counters (`n`, `sealed`)."""
    client.hset(keys.meta, mapping={"partitions": PARTITIONS, "format": "1", "log": log_id})
    for one in entries:
        untyped: Any = client
        untyped.execute_command("XADD", keys.log(one.partition), one.entry, *one.fields)
    for partition, counters in heads.items():
        client.hset(keys.state(partition), mapping=dict(counters))


def as_expected(event: LoggedEvent) -> dict[str, Any]:
    """Return an event as the stored expectation spells it: plain JSON, raw bytes in base64."""
    envelope, position = event.envelope, event.position
    if isinstance(envelope.event, Omitted):
        return left_out(position.partition, position.entry, position.n, envelope.event.why)
    body = msgspec.to_builtins(envelope)
    if isinstance(envelope.event, UnknownEvent):
        body["event"]["raw"] = base64.b64encode(envelope.event.raw).decode()
        if envelope.key.startswith("stray:"):  # why: in words of the library that read it
            body["event"]["name"] = envelope.event.name.partition(":")[0]
    return {
        "partition": position.partition,
        "entry": position.entry,
        "n": position.n,
        "resent": event.resent,
        "envelope": json.loads(json.dumps(body)),
    }


def left_out(partition: int, entry: str, n: int, why: str) -> dict[str, Any]:
    """Return what stands for an event whose content is left out."""
    return {"partition": partition, "entry": entry, "n": n, "omitted": why}
