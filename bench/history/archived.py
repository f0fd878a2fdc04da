"""What the archive takes of a disk, over the msgpack envelopes before any compression.

Counted is the whole directory, manifests included, once all but each partition's last entry
is sealed; the divisor is the envelopes of what is sealed. Real conversations (LoCoMo), and the
suite's own prose, whose text repeats less.
"""

from gauge import Figures, LeftOut, Size
from log.memory import LOCOMO, ingest
from memorybus.agent.client import MemoryBus
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.wire.codec import Encoder
from stage import Agent, Stage
from texts import turns

from history.past import archive_files, seal


def measure(size: Size) -> Figures:
    """Return ratios.

    Raises:
        LeftOut: the conversations are not here.
    """
    if not any(LOCOMO.glob("*.json")):
        raise LeftOut(f"no conversations in {LOCOMO} (LoCoMo, one JSON file each)")
    with Stage() as stage:
        _talk(stage)
        found = _sealed(stage)
    with Stage() as stage:
        with MemoryBus.connect(stage.settings) as bus:
            agent = Agent(bus)
            for turn in turns(size.stored):
                agent.publish(turn)
            agent.flush()
        return found | {f"{name}_prose": value for name, value in _sealed(stage).items()}


def _talk(stage: Stage) -> None:
    ingest(stage.settings, sorted(LOCOMO.glob("*.json")))


def _sealed(stage: Stage) -> Figures:
    everything, events = _encoded(stage), sum(stage.heads().values())
    seal(stage)
    raw = everything - _encoded(stage)
    kept = sum(path.stat().st_size for path in archive_files(stage))
    return {
        "archive_over_raw": kept / raw,
        "archive_bytes_per_event": kept / events,
        "archive_files": float(len(archive_files(stage))),
    }


def _encoded(stage: Stage) -> int:
    """Return the bytes of the envelopes that the log holds, before compression."""
    log = EventLog(connect_redis(stage.settings), stage.settings)
    encoder, total = Encoder(stage.settings.compress_min_bytes), 0
    for partition in range(stage.settings.partitions):
        after = "0-0"
        while events := log.read(partition, after, 500):
            total += sum(len(encoder.envelope(event.envelope)) for event in events)
            after = events[-1].position.entry
    return total
