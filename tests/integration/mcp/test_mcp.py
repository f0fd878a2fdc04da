"""``memorybus mcp`` by the SDK's own client, as the host of a model starts it."""

import sys
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.redis.clusters import free_ports
from helpers.stories.scenario import environ, patient, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

anyio = pytest.importorskip("anyio", reason="the extra mcp is not installed")

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed"),
]

OWN = ["recall", "remember", "forget_memory"]


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return patient(make_settings(url=redis_url, providers=("holographic",), partitions=2))


@asynccontextmanager
async def host(settings: Settings, *words: str) -> Any:
    """Start the server as a host does, and connect."""
    import mcp  # takes a second of every process that only collects this module

    command = ("-m", "memorybus", "mcp", *words)
    server = mcp.StdioServerParameters(
        command=sys.executable, args=[*command], env=environ(settings)
    )
    async with mcp.Client(server) as client:
        yield client


async def call(client: Any, tool: str, **arguments: Any) -> tuple[str, bool]:
    """Call a tool; return its text, and whether it failed."""
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, result.is_error


def test_a_host_remembers_recalls_and_forgets(spawn, settings, redis_client):
    """What a host remembers the next one recalls, for this person alone, until it is forgotten."""
    worker(spawn, settings, jobs=1)

    async def remember() -> list[str]:
        async with host(settings, "--user", "ana") as client:
            text, failed = await call(client, "remember", text="The brass key is under the pot.")
            assert (text, failed) == ("Remembered.", False)
            return [tool.name for tool in (await client.list_tools()).tools]

    async def ask(client: Any) -> str:
        text, failed = await call(client, "recall", query="Where is the brass key?")
        assert not failed, text
        return text

    async def recall_and_forget() -> str:
        async with host(settings, "--user", "ana") as client:
            assert "under the pot" in await ask(client)
            text, failed = await call(client, "forget_memory", text="brass key")
            assert (text, failed) == ("Each provider removes it.", False)
            await anyio.to_thread.run_sync(wait_applied, redis_client, settings, "holographic")
            return await ask(client)

    async def ask_as_bob() -> str:
        async with host(settings, "--user", "bob") as client:
            return await ask(client)

    names = anyio.run(remember)
    assert names[:3] == OWN
    assert {"memory_search", "memory_add"} <= set(names)
    wait_applied(redis_client, settings, "holographic")
    assert anyio.run(ask_as_bob) == "Memory has nothing about this."
    assert "under the pot" not in anyio.run(recall_and_forget)


def test_the_story_of_a_session_is_a_resource(settings):
    """A story leaves out what was undone; another person's session does not exist."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s-1", user="ana", warm=False)
        session.turn_completed("My cat is called Fig.", "A good name.")
        session.undo(session.turn_completed("I hate plums.", "Noted."))
        bus.session("s-2", user="bob", warm=False).turn_completed("I am Bob.", "Hello.")
        assert bus.flush("logged", 10)

    from mcp import MCPError

    async def read() -> str:
        async with host(settings, "--user", "ana") as client:
            for foreign in ("memorybus://sessions/s-2", "memorybus://sessions/none", "file:///etc"):
                with pytest.raises(MCPError, match="no such resource"):
                    await client.read_resource(foreign)
            found = await client.read_resource("memorybus://sessions/s-1")
            return found.contents[0].text

    story = anyio.run(read)
    assert "person: My cat is called Fig.\nassistant: A good name." in story
    assert "plums" not in story


def test_a_profile_and_a_prompt_bring_what_is_known(spawn, settings, redis_client):
    """The profile is a resource, and a prompt carries what is known of its topic."""
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s-1", user="ana", warm=False)
        session.memory_written("add", "Ana is allergic to penicillin.", store="user")
        assert bus.flush("logged", 10)
    wait_applied(redis_client, settings, "holographic")

    from mcp import MCPError

    async def read() -> list[str]:
        async with host(settings, "--user", "ana") as client:
            profile = await client.read_resource("memorybus://profile")
            prompt = await client.get_prompt("about", {"topic": "penicillin"})
            with pytest.raises(MCPError, match="needs a `topic`"):
                await client.get_prompt("about", {"topic": " "})
            return [profile.contents[0].text, prompt.messages[0].content.text]

    for text in anyio.run(read):
        assert "allergic to penicillin" in text


def test_failures_are_results_that_a_model_reads(settings):
    """Without a worker, with wrong arguments or an unknown tool, the model gets the reason."""

    async def fail() -> list[tuple[str, bool]]:
        async with host(settings, "--timeout", "1") as client:
            return [
                await call(client, "recall", query="Where is it?"),
                await call(client, "recall", query=""),
                await call(client, "recall", query="x", user="bob"),
                await call(client, "remember", text="x", about="everyone"),
                await call(client, "no_such_tool"),
            ]

    texts, failed = zip(*anyio.run(fail), strict=True)
    assert all(failed)
    for text, part in zip(
        texts, ("worker", "length >= 1", "unknown field", "about", "no tool"), strict=True
    ):
        assert part in text


def test_a_write_without_redis_waits_in_the_spool(make_settings):
    """A host can remember while Redis is away, and is told that it comes later."""
    settings = make_settings(url=f"redis://127.0.0.1:{free_ports(1)[0]}/0")

    async def remember() -> tuple[str, bool]:
        async with host(settings, "--timeout", "0.2") as client:
            return await call(client, "remember", text="The key is brass.")

    text, failed = anyio.run(remember)
    assert not failed
    assert text.startswith("Remembered later:")
