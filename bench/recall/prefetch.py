"""What a warm `Session.prefetch` costs, against a bare GET of as many bytes.

Two providers have answered; their lines fill the memory block (2,000 characters by default). The
GET is one round trip of redis-py's default client, in the same process, in alternating blocks, for
a value of exactly as many bytes as the block has.
"""

import random

import msgspec
from gauge import US, Figures, Size, medians, p50, p99, timed
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.ids import text_digest
from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.redis import scripts
from memorybus.text.fence import line
from stage import Stage, can_pin, wait_for
from texts import Prose

PROMPT = "what did we say of it?"
_AT_MS = 1_700_000_000_000
_TTL_MS = 600_000
_LINE_CHARS = 120


def measure(size: Size) -> Figures:
    """Return prefetch figures."""
    with Stage() as stage, MemoryBus.connect(stage.settings) as bus:
        session = warm_session(stage, bus)
        wait_for("the warm block", lambda: session.prefetch(PROMPT) != "")
        block = session.prefetch(PROMPT)
        if any(name not in block for name in stage.settings.providers):
            raise RuntimeError("the block does not hold both providers' lines")
        stage.redis.set("bench:get", block.encode())
        runs = [_run(stage, session, size.calls) for _ in range(size.runs)]
        figures = medians(runs) | _by_core(stage, session, size.calls)
        figures["prompt_record_us"] = _record_cost(bus, session, size.calls)
        return figures | {"prefetch_block_bytes": float(len(block.encode()))}


def _record_cost(bus: MemoryBus, session: Session, calls: int) -> float:
    """Return what the record of one prompt costs its agent: noting the block, and publishing it."""
    block = session.prefetch(PROMPT)

    def record(turn: str) -> None:
        session.shown(block)
        bus.prompts.record(session.key, turn)

    bus.prompts.record(session.key)
    return p50(timed(record, [bus.new_id() for _ in range(calls)])) / US


def warm_session(stage: Stage, bus: MemoryBus) -> Session:
    """Return a session for which every provider's answer to `PROMPT` is warm."""
    session = bus.session("warm", warm=False)
    for number, provider in enumerate(stage.settings.providers):
        _warm(stage, session, provider, number)
    return session


def _by_core(stage: Stage, session: Session, calls: int) -> Figures:
    """Measure again with server and client held on one core, and on two (see `publish`)."""
    figures: Figures = {}
    if can_pin():
        for name, same_core in (("same_core", True), ("other_core", False)):
            with stage.pinned(same_core=same_core):
                ratio = _run(stage, session, calls)["prefetch_p50_over_get"]
                figures[f"prefetch_p50_over_get_{name}"] = ratio
    return figures


def _warm(stage: Stage, session: Session, provider: str, seed: int) -> None:
    """Store a result as a recall job does."""
    prose = Prose(random.Random(seed))
    lines = tuple(line(prose.text(_LINE_CHARS), at=_AT_MS, speaker="Ada") for _ in range(8))
    want = scripts.request_recall(
        stage.keys, session.slot, msgspec.json.encode(RecallRequest(PROMPT)), _TTL_MS
    )
    generation = scripts.run(stage.redis, want)
    events, scores = tuple(text_digest(text) * 2 for text in lines), (1.5,) * len(lines)
    answer = WarmResult(lines, asked=text_digest(PROMPT), events=events, scores=scores)
    result = msgspec.msgpack.encode(answer)
    call = scripts.store_warm(stage.keys, session.slot, provider, generation, result, _TTL_MS)
    scripts.run(stage.redis, call)


def _run(stage: Stage, session: Session, calls: int) -> Figures:
    got = timed(stage.redis.get, ["bench:get"] * calls)
    warm = timed(session.prefetch, [PROMPT] * calls)
    return {
        "prefetch_p50_over_get": p50(warm) / p50(got),
        "prefetch_p99_over_get_p99": p99(warm) / p99(got),
        "prefetch_p50_us": p50(warm) / US,
        "prefetch_p99_us": p99(warm) / US,
        "get_p50_us": p50(got) / US,
        "get_p99_us": p99(got) / US,
    }
