"""Search by meaning through the bus: a real worker, its recall process, and a real embedder."""

from itertools import count
from typing import Any

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import embedding_server
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.health.monitor import read_status

HOLO = "holographic"
SURE: Any = {**PATIENT, "prefetch_wait": 30.0}


@pytest.mark.timeout(240)
def test_a_worker_fills_in_what_a_dead_embedder_left_out(redis_url, make_settings, spawn):
    """While it is dead, events are applied and the status says what is missing."""
    with embedding_server() as server:
        options = {"embedder": server.address, "embedder_model": "m", "embedder_wait": 20.0}
        settings = make_settings(url=redis_url, providers=(HOLO,), provider={HOLO: options}, **SURE)
        server.refuse = 1_000
        worker(spawn, settings, jobs=1)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("s", warm=False)
            session.turn_completed("I bought a sedan.", "A good choice.", ordinal=0)
            assert bus.flush(timeout=30)

            def reported() -> str:
                (found,) = read_status(settings).providers
                return found.reports if "503" in found.reports and not found.backlog else ""

            assert wait_until(reported, "the status tells it").startswith(
                "2 of 2 facts have no vector yet; "
            )
            with server.lock:
                server.refuse = 0
            wait_until(lambda: not read_status(settings).providers[0].reports, "nothing lacks", 60)
            _wait_until_found_by_meaning(bus, "after")


@pytest.mark.timeout(240)
def test_a_rebuild_renews_the_vectors_of_a_changed_model(redis_url, make_settings, spawn):
    """Under another model words alone answer, until a rebuild has made vectors by it (G8)."""
    with embedding_server() as server:
        options = {"embedder": server.address, "embedder_model": "old", "embedder_wait": 20.0}
        old = make_settings(url=redis_url, providers=(HOLO,), provider={HOLO: options}, **SURE)
        changed = {HOLO: {**options, "embedder_model": "new"}}
        new = msgspec.structs.replace(old, provider=changed)
        first = worker(spawn, old, jobs=1)
        with MemoryBus.connect(old) as bus:
            session = bus.session("s", warm=False)
            session.turn_completed("I bought a sedan.", "A good choice.", ordinal=0)
            _wait_until_found_by_meaning(bus, "before")
            assert first.terminate() == 0

            worker(spawn, new, jobs=1)
            reported = lambda: read_status(new).providers[0].reports  # noqa: E731
            assert "memorybus rebuild holographic" in wait_until(reported, "the change is told")
            ran(spawn, new, "rebuild", HOLO, "--yes")
            wait_until(lambda: not reported(), "the new instance has all vectors", 60)
            _wait_until_found_by_meaning(bus, "after")


def _wait_until_found_by_meaning(bus: MemoryBus, name: str) -> None:
    """Ask with no word of the memory; each time as a new session, since an answer stays warm."""
    sessions = (bus.session(f"{name}-{number}", warm=False) for number in count())
    wait_until(
        lambda: "sedan" in next(sessions).prefetch("Which vehicle?"), "it is found by meaning", 60
    )
