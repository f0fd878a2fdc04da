"""The curator on the page: its runs, what one changed, and acts on it."""

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.stories.scenario import PATIENT, wait_applied, worker
from helpers.web.hostile import HOSTILE, elements
from helpers.web.pages import HASH, served
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM

pytestmark = pytest.mark.timeout(240)

DAY_MS = 86_400_000


def test_a_run_is_shown_and_taken_back(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn, redis_client: redis.Redis
):
    """An operator runs it, reads what changed, hostile texts escaped, and takes the run back."""
    settings = make_settings(
        url=redis_url, providers=("holographic",), page_token=HASH, curator_every=0.0, **PATIENT
    )
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", user="ana", warm=False)
        for text in HOSTILE:
            at = SYSTEM.now_ms() - 100 * DAY_MS
            session.memory_written("add", f"heron {text}", store="user", at=at)
        assert bus.flush("logged", 60)
    wait_applied(redis_client, settings, "holographic")
    with served(settings) as visitor:
        visitor.sign_in("ann")
        plain = elements(visitor.get("/curator").text)
        assert "It has not run yet" in visitor.get("/curator").text

        visitor.post("/curator/run", {"proof": visitor.proof()})
        page = visitor.get("/curator").text
        assert page.count("active → stale") == len(HOSTILE)
        assert {name for name, _ in elements(page)} - {name for name, _ in plain} <= {
            "h2",
            "h3",
            "time",
        }
        run = page.split('href="/curator?run=')[1].split('"')[0]

        visitor.post(f"/curator/{run}/undo", {"proof": visitor.proof(), "why": "Ana wants them"})
        assert visitor.get("/curator").text.count("stale → active") == len(HOSTILE)
        assert "no run" in visitor.get("/curator?run=nothing").text
    assert child.terminate() == 0
