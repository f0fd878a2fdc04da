"""From `turn_completed` to the provider's hook, and to the lane's checkpoint, on an idle system.

One event at a time, 20 to 50 ms apart, into a real worker process. The first figure ends when the
provider's hook runs (it writes down the wall time, which all processes of a machine share), the
second when the lane's checkpoint in Redis has moved, as seen by a client that asks without pause;
the asking itself slows a machine of few cores, so it is taken apart from the first.
"""

import random
import struct
import time

import msgspec
from gauge import Figures, Size, p50, p99
from memorybus.agent.client import MemoryBus
from memorybus.redis.keys import partition_of
from stage import Agent, Stage, wait_for
from texts import SESSIONS, Turn, turns

from providers import STAMPS

STAMP = "bench.providers:StampProvider"
_NS_PER_MS = 1_000_000


def measure(size: Size) -> Figures:
    """Return latencies in milliseconds."""
    with Stage() as stage:
        settings = stage.with_providers({"stamp": STAMP})
        with stage.worker(settings), MemoryBus.connect(settings) as bus:
            agent = Agent(bus)
            agent.flush()
            stage.await_applied("stamp")
            hook = _until_hook(stage, agent, size.singles)
            committed = _until_checkpoint(stage, agent, max(50, size.singles // 3))
    return {
        "applied_p50_ms": p50(hook),
        "applied_p99_ms": p99(hook),
        "applied_checkpoint_p50_ms": p50(committed),
        "applied_checkpoint_p99_ms": p99(committed),
    }


def _numbered(count: int, seed: int) -> list[tuple[int, Turn]]:
    """Return turns whose ordinals are all different, so that a stamp names its turn."""
    made = enumerate(turns(count, seed), seed * 1_000_000)
    return [(n, msgspec.structs.replace(turn, ordinal=n)) for n, turn in made]


def _idle(rng: random.Random) -> None:
    time.sleep(rng.uniform(0.02, 0.05))


def _until_hook(stage: Stage, agent: Agent, count: int) -> list[float]:
    rng = random.Random(1)
    began: dict[int, int] = {}
    for number, turn in _numbered(count, 1):
        _idle(rng)
        began[number] = time.time_ns()
        agent.publish(turn)
    path = stage.settings.provider_home("stamp") / STAMPS
    wait_for("the last stamp", lambda: path.stat().st_size >= 16 * count)
    stamps = struct.iter_unpack(">QQ", path.read_bytes())
    return [(at - began[number]) / _NS_PER_MS for number, at in stamps if number in began]


def _until_checkpoint(stage: Stage, agent: Agent, count: int) -> list[float]:
    rng = random.Random(2)
    heads = stage.heads()
    spent = []
    for _, turn in _numbered(count, 2):
        _idle(rng)
        partition = _partition(agent, turn, stage.settings.partitions)
        heads[partition] += 1
        lane, wanted = stage.keys.lane(partition, "stamp"), heads[partition]
        began = time.perf_counter_ns()
        agent.publish(turn)
        while int(stage.redis.hget(lane, "n") or 0) < wanted:
            pass
        spent.append((time.perf_counter_ns() - began) / _NS_PER_MS)
    return spent


def _partition(agent: Agent, turn: Turn, partitions: int) -> int:
    session = agent.sessions[turn.session % SESSIONS]
    return partition_of(session.key, partitions)
