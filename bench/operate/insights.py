"""How long `memorybus insights` takes over a million sealed events, and its memory, in a process.

The events are turns of 3,000 sessions over 29 days, a third with tools, sealed as an archiver seals
them; a thousand more are in the log's tail.
"""

import json
import subprocess
import sys

from gauge import Figures, Size
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.location import archive_of
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, to_environ
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.ids import new_id
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.wire.codec import Encoder
from stage import Agent, Stage
from texts import Turn, turns

EVENTS = 1_000_000
TAIL = 1_000
SESSIONS = 3_000
BATCH = 40_000
_DAYS_MS = 29 * 86_400_000

_PROGRAM = """
import json, resource, sys, time
from memorybus.config.settings import load
from memorybus.insights.reading import read_insights
settings = load()
began = time.perf_counter()
turns = read_insights(settings, zone="Europe/Berlin").overview.turns
took = time.perf_counter() - began
size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"ms": took * 1e3, "mb": size, "turns": turns}))
"""


def measure(size: Size) -> Figures:
    """Return milliseconds and megabytes; the short form has a tenth of the events."""
    count = EVENTS // 10 if size.quick else EVENTS
    with Stage() as stage:
        _seal(stage.settings, count)
        _publish_tail(stage)
        runs = [_run(stage.settings) for _ in range(3)]
    if any(run["turns"] != count + TAIL for run in runs):
        raise RuntimeError(f"{runs[0]['turns']} turns were counted, not {count + TAIL}")
    name = "insights_1m" if count == EVENTS else "insights_100k"
    middle = sorted(run["ms"] for run in runs)[1]
    return {f"{name}_ms": middle, f"{name}_mb": max(run["mb"] for run in runs)}


def _run(settings: Settings) -> dict[str, float]:
    done = subprocess.run(
        (sys.executable, "-c", _PROGRAM),
        env=to_environ(settings),
        check=True,
        capture_output=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _publish_tail(stage: Stage) -> None:
    from memorybus.agent.client import MemoryBus

    with MemoryBus.connect(stage.settings) as bus:
        agent = Agent(bus)
        for turn in turns(TAIL):
            agent.publish(turn)
        agent.flush()


def _seal(settings: Settings, count: int) -> None:
    """Seal events into a partition of which the log has no entry."""
    redis = connect_redis(settings)
    EventLog(redis, settings).open()
    archive = archive_of(redis, settings)
    if archive is None:
        raise RuntimeError("there is no log")
    talk, now = list(turns(2_000)), SYSTEM.now_ms()
    encoder = Encoder(1 << 30)
    for start in range(0, count, BATCH):
        batch = range(start, min(start + BATCH, count))
        entries = [_entry(n, now, count, talk[n % len(talk)], encoder) for n in batch]
        while entries:
            last = archive.publish(settings.partitions - 1, entries).last
            entries = [entry for entry in entries if entry.n > last.n]
    redis.close()


def _entry(n: int, now: int, count: int, turn: Turn, encoder: Encoder) -> RawEntry:
    session = f"s{n % SESSIONS}"
    at = now - (count - n) * (_DAYS_MS // count)
    call = {"function": {"name": f"tool{n % 9}", "arguments": "{}"}}
    event = TurnCompleted(
        user=turn.user,
        assistant=turn.assistant,
        model=f"model{n % 4}",
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        messages=({"role": "assistant", "tool_calls": [call]},) if n % 3 == 0 else (),
    )
    envelope = Envelope(
        id=new_id(),
        key=f"session:{session}",
        scope=Scope(user=f"user{n % 50}", platform=("cli", "telegram")[n % 2]),
        session=SessionRef(id=session, root=session),
        at=at,
        event=event,
    )
    return RawEntry(f"{at}-0", n + 1, [b"n", b"%d" % (n + 1), b"e", encoder.envelope(envelope)])
