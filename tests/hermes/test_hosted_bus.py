"""Two real Hermes plugins at once behind one agent: events, tools and recall through the bus."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hosted.hosted import ended
from helpers.hosted.hosted_steps import facts
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.services.mem0_server import Mem0Server, mem0_server
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
    pytest.mark.usefixtures("redis_server"),
]


@pytest.fixture
def server() -> Iterator[Mem0Server]:
    """Return the stand-in of mem0's server."""
    with mem0_server() as running:
        yield running


@pytest.fixture
def hosting(make_settings: MakeSettings, short_dir: Path, server: Mem0Server) -> Iterator[Settings]:
    """Return settings with holographic and mem0 as the providers."""
    mem0 = short_dir / "mem0-home"
    mem0.mkdir()
    (mem0 / "mem0.json").write_text(json.dumps({"host": server.url}))
    table = {"hermes_python": str(PYTHON), "idle": 2.0}
    with ended([short_dir]):
        yield make_settings(
            partitions=4,
            providers=("facts", "mem0"),
            provider={
                "facts": {"kind": "hermes:holographic", **table},
                "mem0": {"kind": "hermes:mem0", "hermes_home": str(mem0), **table},
            },
            call_timeout=30.0,
            lease=40.0,
            recall_timeout=40.0,
            tool_wait=40.0,
        )


def test_two_plugins_at_once(hosting, server, spawn):
    """Each plugin gets what it has a use for, all tools are offered, both recall (G3)."""
    worker(spawn, hosting, jobs=1)
    with MemoryBus.connect(hosting) as bus:
        wait_until(lambda: len(bus.tools().schemas()) == 6, "the tools of both are offered", 60)
        session = bus.session("s1")
        session.turn_completed("I keep a parrot called Kiwi", "Nice.")
        session.memory_written("add", "Anna keeps a parrot", store="user")
        added = session.call_tool("fact_store", {"action": "add", "content": "A parrot can talk"})
        assert added["status"] == "added", added
        found = session.call_tool("mem0_search", {"query": "parrot"})
        assert found["results"][0]["memory"] == "I keep a parrot called Kiwi"
        home = hosting.provider_home("facts") / "hermes"
        wait_until(lambda: len(facts(home)) >= 2, "holographic holds both facts", 60)

        def both() -> bool:
            session.queue_prefetch("parrot")
            block = session.prefetch("parrot")
            return all(one in block for one in ("Kiwi", "Anna keeps a parrot", "can talk"))

        wait_until(both, "one block recalls from both plugins", 90)
    assert len(server.stored) == 1
    assert sorted(row[1] for row in facts(home)[:2]) == ["A parrot can talk", "Anna keeps a parrot"]
    assert not any(one.dead_letters for one in read_status(hosting).providers)
