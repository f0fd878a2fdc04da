"""The real mem0 plugin, hosted, against a self-hosted Mem0 server's stand-in on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hosted.hosted import asking, context, ended, hosted, say
from helpers.services.mem0_server import Mem0Server, mem0_server
from memorybus.errors import Transient
from memorybus.events import SessionStarted
from memorybus_providers.adapters.hermes import HostedHermesProvider

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]


@pytest.fixture
def server() -> Iterator[Mem0Server]:
    """Return a running server."""
    with mem0_server() as running:
        yield running


@pytest.fixture
def mem0(server: Mem0Server, short_dir: Path) -> Iterator[HostedHermesProvider]:
    """Return an open provider of the real plugin, which talks to that server."""
    home = short_dir / "hermes-home"
    home.mkdir()
    (home / "mem0.json").write_text(json.dumps({"host": server.url, "api_key": "m0-not-a-key"}))
    with ended([short_dir]):
        provider = hosted("mem0", short_dir / "home", PYTHON, hermes_home=str(home))
        provider.open()
        yield provider
        provider.shutdown()


def test_a_turn_is_stored_when_it_counts(mem0, server):
    """Mem0 sends from a thread; the event is applied when the server has answered."""
    server.slow = 0.5
    say(mem0, "my cat is Mimi")
    assert [one["messages"][0]["content"] for one in server.stored] == ["my cat is Mimi"]


def test_a_refusing_server_fails_the_event(mem0, server):
    """HTTP 500, which the plugin only logs, is a failure to try again; the retry succeeds."""
    server.status = 500
    with pytest.raises(Transient, match="500"):
        say(mem0, "one")
    server.status = 200
    say(mem0, "one")
    assert len(server.stored) == 1


def test_it_recalls_for_one_person_only(mem0, server):
    """The plugin keeps persons apart by ``user_id``; its search tool only reads."""
    mem0.initialize(SessionStarted(), context("a", user="anna"))
    say(mem0, "Anna's cat is Mimi", "a", user="anna")
    say(mem0, "Bob's cat is Tom", "b", user="bob")
    found = [one.text for one in mem0.prefetch("cat", asking("a", user="anna"))]
    assert found == ["Anna's cat is Mimi"]
    assert "mem0_search" in mem0.capabilities.reading_tools
    answer = mem0.handle_tool_call("mem0_search", {"query": "cat"}, context("b", user="bob"))
    assert [one["memory"] for one in answer["results"]] == ["Bob's cat is Tom"]


def test_a_writing_tool_is_answered(mem0, server):
    """mem0_add stores, and its answer comes back; a failure is in the answer, for the model."""
    assert "result" in mem0.handle_tool_call("mem0_add", {"content": "a fact"}, context())
    server.status = 500
    assert "error" in mem0.handle_tool_call("mem0_add", {"content": "a fact"}, context())
