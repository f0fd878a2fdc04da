"""How many copies a backend gets of what it refused or did not answer (G4): the real plugins.

The servers are fakes on loopback that refuse (HTTP 503 before anything is stored) and lose answers.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hosted.hosted import children, context, ended, hosted, insist, is_alive, say
from helpers.processes.waiting import wait_until
from helpers.services.honcho_server import HonchoServer, honcho_server
from helpers.services.posted_server import PostedServer, posted_server
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.errors import Unavailable
from memorybus.events import MemoryWritten, SessionEnded, SessionSwitched
from memorybus.health.monitor import read_status
from memorybus.ids import new_id
from memorybus_providers.adapters.hermes import HostedHermesProvider

Host = Callable[..., HostedHermesProvider]

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]


@pytest.fixture
def host(short_dir: Path) -> Iterator[Host]:
    """Return a maker of open providers with a HERMES_HOME of these files."""
    home, made = short_dir / "hermes-home", list[HostedHermesProvider]()

    def make(plugin: str, files: Mapping[str, str]) -> HostedHermesProvider:
        home.mkdir(exist_ok=True)
        for name, text in files.items():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(text)
        made.append(hosted(plugin, short_dir / "home", PYTHON, hermes_home=str(home)))
        made[-1].open()
        return made[-1]

    with ended([short_dir]):
        yield make
        for one in made:
            one.shutdown()


@pytest.fixture
def server() -> Iterator[HonchoServer]:
    """Return a running fake of Honcho."""
    with honcho_server() as running:
        yield running


@pytest.fixture
def honcho(host: Host, server: HonchoServer) -> HostedHermesProvider:
    """Return an open provider of the real plugin and SDK, with their default settings."""
    config = {"baseUrl": server.url, "enabled": True}
    return host("honcho", {"honcho.json": json.dumps(config)})


def test_honcho_is_told_each_turn_once(honcho, server):
    """Without a failure there is one copy, and one request for each turn."""
    for number in range(3):
        say(honcho, f"turn {number}")
    assert server.contents() == ["turn 0", "ok", "turn 1", "ok", "turn 2", "ok"]
    stored = [path for method, path in server.asked if path.endswith("/messages")]
    assert len(stored) == 3


@pytest.mark.parametrize("refusals", [1, 9])
def test_honcho_refusals_lose_no_turn(honcho, server, refusals):
    """However often Honcho refuses, beside what its SDK tries the bus does, until it is there."""
    server.refuse = refusals
    errors = insist(honcho, "my cat is Mimi", tries=refusals + 1)
    assert {type(error) for error in errors} <= {Unavailable}
    say(honcho, "the next")
    honcho.on_session_end(SessionEnded(), context())
    assert list(dict.fromkeys(server.contents())) == ["my cat is Mimi", "ok", "the next"]


def test_a_crash_leaves_one_more_copy_at_most(honcho, server, short_dir):
    """G4 (blind): the process is killed once Honcho has the turn, before a worker knows of it."""
    event = new_id()
    say(honcho, "my cat is Mimi", event=event)
    (child,) = children(short_dir / "home")
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child), "the child is gone")
    say(honcho, "my cat is Mimi", event=event)
    assert server.contents() == ["my cat is Mimi", "ok"] * 2


@pytest.mark.usefixtures("redis_server")
def test_an_outage_loses_no_turn(make_settings, server, short_dir, spawn):
    """G3, G4: a worker tries again until Honcho is back, then loses two answers: all are there."""
    home = short_dir / "honcho-home"
    home.mkdir()
    (home / "honcho.json").write_text(json.dumps({"baseUrl": server.url, "enabled": True}))
    table = {"kind": "hermes:honcho", "hermes_python": str(PYTHON), "hermes_home": str(home)}
    settings = make_settings(
        partitions=1,
        providers=("honcho",),
        provider={"honcho": {**table, "idle": 2.0}},
        call_timeout=30.0,
        lease=40.0,
    )
    server.refuse = 1_000_000
    with ended([short_dir]), MemoryBus.connect(settings) as bus:
        worker(spawn, settings)
        session = bus.session("s1", warm=False)
        for number in range(3):
            session.turn_completed(f"turn {number}", "ok")
        wait_until(lambda: server.refuse < 1_000_000 - 3, "Honcho has refused four times", 60)
        server.refuse, server.lose = 0, 2
        wait_until(lambda: "turn 2" in server.contents(), "all turns are there", 60)
        wait_until(lambda: not read_status(settings).providers[0].backlog, "all are applied", 60)
    said = [text for number in range(3) for text in (f"turn {number}", "ok")]
    assert list(dict.fromkeys(server.contents())) == list(dict.fromkeys(said))


@pytest.fixture
def hindsight(host: Host) -> Iterator[tuple[HostedHermesProvider, PostedServer]]:
    """Return the real plugin and SDK, and the fake of a Hindsight that appends to documents."""
    answers = {
        "/version": {"version": "0.6.1"},
        "/memories": {"success": True, "bank_id": "hermes", "items_count": 1, "async": True},
    }
    with posted_server("/memories$", answers) as server:
        config = {"mode": "cloud", "api_url": server.url, "api_key": "no-key-at-all"}
        folder = {"hindsight/config.json": json.dumps({**config, "retain_every_n_turns": 1})}
        yield host("hindsight", folder), server


def test_hindsight_copies(hindsight):
    """One after any number of refusals, and at least one after a lost answer."""
    provider, server = hindsight
    server.refuse = 3
    assert len(insist(provider, "the refused", tries=4)) == 3
    say(provider, "the next")
    server.lose = 1
    insist(provider, "the lost", tries=2)
    assert [server.copies(f"the {word}") for word in ("refused", "next")] == [1, 1]
    assert server.copies("the lost") >= 1


@pytest.fixture
def retaindb(host: Host) -> Iterator[tuple[HostedHermesProvider, PostedServer]]:
    """Return the real plugin, and the fake of RetainDB."""
    with posted_server("/v1/memory|/v1/memories") as server:
        env = f"RETAINDB_API_KEY=no-key-at-all\nRETAINDB_BASE_URL={server.url}\n"
        yield host("retaindb", {".env": env}), server


def test_retaindb_copies(retaindb):
    """Its queue on disk and the bus try again: nothing is lost."""
    provider, server = retaindb
    server.refuse = 3
    insist(provider, "the refused", tries=4)
    say(provider, "the last", "another session")
    event = MemoryWritten(action="add", store="user", content="the mirrored")
    wait_until(lambda: server.copies("the refused"), "its queue has sent what was refused", 60)
    server.refuse = 2  # it asks a second route by itself
    with pytest.raises(Unavailable):
        provider.on_memory_write(event, context())
    provider.on_memory_write(event, context())
    assert all(server.copies(f"the {word}") for word in ("refused", "last", "mirrored"))


@pytest.fixture
def supermemory(host: Host) -> Iterator[tuple[HostedHermesProvider, PostedServer]]:
    """Return the real plugin and SDK, and the fake of Supermemory."""
    with posted_server(
        "/v4/conversations|/v3/documents", {"": {"id": "1", "status": "queued"}}
    ) as server:
        env = f"SUPERMEMORY_API_KEY=no-key-at-all\nSUPERMEMORY_BASE_URL={server.url}\n"
        yield host("supermemory", {".env": env}), server


def test_supermemory_sends_a_session_when_it_ends(supermemory):
    """It keeps turns in memory until then, as the note of its instance tells people."""
    provider, server = supermemory
    say(provider, "the first")
    assert server.posted == []
    assert "in its memory until the session ends" in provider.note
    event = SessionSwitched(new_id="s2", parent="s1", reason="reset", reset=True)
    provider.on_session_switch(event, context("s2"))
    say(provider, "the second", "s2")
    provider.on_session_end(SessionEnded(), context("s2"))
    assert [body["conversationId"] for _, body in server.posted] == ["s1", "s2"]
    assert [server.copies(f"the {word}") for word in ("first", "second")] == [1, 1]


def test_supermemory_mirrors_a_write_once(supermemory):
    """A refused mirror of a memory write is seen, though the plugin hardly tells of it."""
    provider, server = supermemory
    event = MemoryWritten(action="add", store="user", content="Anna likes tea")
    server.refuse = 1
    with pytest.raises(Unavailable):
        provider.on_memory_write(event, context())
    provider.on_memory_write(event, context())
    assert server.copies("Anna likes tea") == 1


@pytest.fixture
def openviking(host: Host) -> Iterator[tuple[HostedHermesProvider, PostedServer]]:
    """Return the real plugin, and the fake of an OpenViking server."""
    with posted_server(
        "/messages/batch$|/content/write$", {"/health": {"healthy": True}}
    ) as server:
        yield host("openviking", {".env": f"OPENVIKING_ENDPOINT={server.url}\n"}), server


def test_openviking_copies(openviking):
    """It tries a turn again by itself: nothing is lost."""
    provider, server = openviking
    server.refuse = 3
    insist(provider, "the refused", tries=4)
    event = MemoryWritten(action="add", store="user", content="Anna likes tea")
    server.refuse = 1
    with pytest.raises(Unavailable):
        provider.on_memory_write(event, context())
    provider.on_memory_write(event, context())
    assert server.copies("the refused") >= 1
    assert server.copies("Anna likes tea") == 1


def test_mem0_copies(host):
    """One after more refusals than its own breaker bears, two after a lost answer."""
    with posted_server("/memories$", {"/": {"results": []}}) as server:
        provider = host("mem0", {"mem0.json": json.dumps({"host": server.url})})
        server.refuse = 7
        assert len(insist(provider, "the refused", tries=8)) == 7
        server.lose = 1
        assert len(insist(provider, "the lost", tries=2)) == 1
        assert [server.copies(f"the {one}") for one in ("refused", "lost")] == [1, 2]
