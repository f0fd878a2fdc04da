"""Figures without a bound: imports, recalls, a real provider's drain, a spool after an outage."""

import os
import statistics
import subprocess
import sys
import time

from gauge import Figures, Size, p50, p99, timed
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.recall.operator_recall import recall_now
from stage import WAIT_SECONDS, Agent, Stage, wait_for
from texts import turns

_IMPORTS = 7
_TURNS = 5_000
_QUESTIONS = 60
HOLOGRAPHIC = "holographic"


def measure(size: Size) -> Figures:
    """Return all of them."""
    return imports() | outage(min(size.drained, 20_000)) | recall()


def imports() -> Figures:
    """Time two imports in fresh processes, less what a process without them takes."""
    spent: dict[str, list[float]] = {
        "pass": [],
        "import memorybus.agent.client": [],
        "import redis": [],
    }
    for _ in range(_IMPORTS):
        for statement, times in spent.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True, env=os.environ)
            times.append(time.perf_counter() - began)
    bare, ours, redis = (statistics.median(times) * 1_000 for times in spent.values())
    return {
        "import_client_ms": ours - bare,
        "import_redis_ms": redis - bare,
        "import_client_over_redis": (ours - bare) / (redis - bare),
    }


def outage(count: int) -> Figures:
    """Spool events while Redis is away; time how a later start sends them all."""
    with Stage() as stage:
        with stage.away(), MemoryBus.connect(stage.settings) as bus:
            agent = Agent(bus)
            for turn in turns(count):
                agent.publish(turn)
        began = time.perf_counter()
        with MemoryBus.connect(stage.settings) as bus:
            bus.flush("logged", WAIT_SECONDS)
            spent = time.perf_counter() - began
        logged = sum(stage.heads().values())
    if logged < count:
        raise RuntimeError(f"only {logged} of {count} spooled events came into the log")
    return {"spool_drain_per_s": logged / spent}


def recall() -> Figures:
    """Drain into holographic, then ask it: directly, and ahead of time as a session does."""
    with Stage() as stage:
        settings = stage.with_providers({HOLOGRAPHIC: HOLOGRAPHIC})
        with MemoryBus.connect(settings) as bus:
            agent = Agent(bus)
            for turn in turns(_TURNS):
                agent.publish(turn)
            agent.flush()
            with stage.worker(settings, jobs=1):
                ready_ms = time.time() * 1_000
                drained = stage.await_applied(HOLOGRAPHIC) - ready_ms
                return {"drain_holographic_per_s": _TURNS / drained * 1_000} | _asked(agent)


def _asked(agent: Agent) -> Figures:
    questions = [turn.user[:80] for turn in turns(_QUESTIONS, seed=3)]
    _everyones(agent.bus, questions[0])
    direct = timed(lambda question: _everyones(agent.bus, question), questions)
    told = {turn.session: turn.user[:80] for turn in turns(_TURNS)}
    warm = timed(lambda session: _warmed(agent, session, told[session]), told)
    return {
        "recall_p50_ms": p50(direct) / 1e6,
        "recall_p99_ms": p99(direct) / 1e6,
        "queue_prefetch_to_warm_p50_ms": p50(warm) / 1e6,
    }


def _everyones(bus: MemoryBus, question: str) -> None:
    recall_now(
        bus.settings,
        SYSTEM,
        question,
        agent=None,
        user=None,
        workspace=None,
        session=None,
        providers=None,
        budget=bus.settings.recall_budget,
        timeout=WAIT_SECONDS,
    )


def _warmed(agent: Agent, number: int, question: str) -> None:
    """Ask ahead for what was told in a session, which has nothing warm yet, until it has."""
    session = agent.sessions[number]
    session.queue_prefetch(question)
    wait_for("a warm result", lambda: session.prefetch(question, wait=0) != "", look=0.001)
