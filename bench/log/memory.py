"""What an event takes in Redis, with everything the bus keeps about it, over its encoded bytes.

Counted are streams, dense numbers, event ids kept against duplicates and a no-op provider's lanes,
after N events of 50 sessions went through the bus, in two ways: what the server says it uses more
(``used_memory``), and the sum of ``MEMORY USAGE`` over all our keys. The larger one counts. The
divisor is the msgpack envelope before compression.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apply.drain import NOOP
from gauge import Figures, Size
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.wire.codec import Encoder
from memorybus_console.operations.ingest import conversations
from stage import ROOT, Agent, Stage
from texts import turns

LOCOMO = ROOT.parent / "shared" / "data" / "locomo"

_SHORT_SCALE = 0.1
"""Texts of a tenth of the usual length: events of some 0.4 KB, where overheads weigh most."""

Publish = Callable[[MemoryBus], None]


def measure(size: Size) -> Figures:
    """Return bytes per event and ratios: turns of 1.4 KB, short ones, LoCoMo if it is at hand."""
    figures = _measured(lambda bus: _publish_prose(bus, size.stored), "")
    figures |= _measured(lambda bus: _publish_prose(bus, size.stored, _SHORT_SCALE), "_short")
    files = sorted(LOCOMO.glob("*.json"))
    if files:
        figures |= _measured(lambda bus: ingest(bus.settings, files), "_locomo")
    return figures


def _publish_prose(bus: MemoryBus, count: int, scale: float = 1.0) -> None:
    agent = Agent(bus)
    for turn in turns(count, scale=scale):
        agent.publish(turn)
    agent.flush()


def ingest(settings: Settings, files: list[Path]) -> None:
    """Publish the conversations of files until the log has them.

    Raises:
        RuntimeError: a file or a turn was refused.
    """
    sources, refused = conversations.load_files(files)
    report = conversations.ingest_conversations(
        settings, sources, user=None, agent=None, on_stage=_in_silence
    )
    if refused := [*refused, *report.refused]:
        raise RuntimeError(f"not read: {refused[0].describe()}")


@contextmanager
def _in_silence(*_: object) -> Iterator[Callable[..., None]]:
    yield lambda *_: None


def _measured(publish: Publish, suffix: str) -> Figures:
    with Stage() as stage:
        settings = stage.with_providers({"noop": NOOP})
        with stage.worker(settings):
            before = _used(stage)
            with MemoryBus.connect(settings) as bus:
                publish(bus)
            stage.await_applied("noop")
        used = _used(stage) - before
        encoded = sum(len(body) for body, _ in _bodies(stage))
        stored = sum(stored for _, stored in _bodies(stage))
        events = sum(stage.heads().values())
        by_key = _by_key(stage)
    return {
        f"redis_bytes_over_encoded{suffix}": max(used, sum(by_key.values())) / encoded,
        f"redis_used_bytes_over_encoded{suffix}": used / encoded,
        f"redis_key_bytes_over_encoded{suffix}": sum(by_key.values()) / encoded,
        f"redis_seen_bytes_per_event{suffix}": by_key["seen"] / events,
        f"redis_log_bytes_per_event{suffix}": by_key["log"] / events,
        f"encoded_bytes_per_event{suffix}": encoded / events,
        f"stored_body_over_encoded{suffix}": stored / encoded,
    }


def _used(stage: Stage) -> int:
    return int(stage.redis.info("memory")["used_memory"])


def _bodies(stage: Stage) -> Iterator[tuple[bytes, int]]:
    """Yield each event's plain msgpack and the length of its stored body."""
    log = EventLog(connect_redis(stage.settings), stage.settings)
    encoder = Encoder(stage.settings.compress_min_bytes)
    for partition in range(stage.settings.partitions):
        after = "0-0"
        while events := log.read(partition, after, 500):
            for event in events:
                body = encoder.envelope(event.envelope)
                yield body, len(encoder.pack(body))
            after = events[-1].position.entry


def _by_key(stage: Stage) -> dict[str, int]:
    total = {"log": 0, "seen": 0, "other": 0}
    for key in stage.redis.scan_iter(match=f"{stage.settings.namespace}:*"):
        parts = key.decode().split(":")
        kind = parts[2] if len(parts) > 2 and parts[2] in total else "other"
        total[kind] += int(stage.redis.memory_usage(key, samples=0) or 0)
    return total
