"""The facade as an agent uses it, against a real Redis and a real worker."""

import asyncio
from collections.abc import Iterator

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.log import logged
from helpers.stories.scenario import home, log_length, recorded, thread_worker, wait_applied
from memorybus.agent.aio import AsyncMemoryBus
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, EventTooLarge, SpoolFull
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Envelope,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.redis.keys import store_key


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


def envelopes(settings: Settings) -> list[Envelope]:
    """Return the log's envelopes."""
    return [event.envelope for event in logged(settings)]


def test_a_life_of_a_session(bus, settings):
    """G3: every event of a lineage stands in one partition, in the order of the calls."""
    session = bus.session("life", warm=False, title="a garden")
    session.turn_completed("hello", "hi", ordinal=0)
    session.compressing([{"role": "user", "content": "hello"}])
    compressed = session.compressed()
    branch = compressed.branch("branch")
    branch.delegated("dig", "dug", child_session="child")
    branch.ended("done")
    assert bus.flush()
    found = [envelope for envelope in envelopes(settings) if envelope.key == session.key]
    assert [type(envelope.event) for envelope in found] == [
        SessionStarted,
        TurnCompleted,
        ContextCompressing,
        SessionSwitched,
        SessionStarted,
        Delegated,
        SessionEnded,
    ]
    assert [envelope.session.root for envelope in found] == ["life"] * 7
    assert [envelope.session.epoch for envelope in found] == [0, 0, 0, 1, 0, 0, 0]
    assert found[-1].session.parent == "life"


def test_writes_are_keyed_by_their_store(bus, settings):
    """G3: writes to `user` keep their order across agents, writes to `memory` across users."""
    one = bus.session("one", agent="a", user="ann", warm=False)
    two = bus.session("two", agent="b", user="ann", warm=False)
    one.memory_written("add", "first", store="user")
    two.memory_written("add", "second", store="user")
    assert bus.flush()
    key = store_key("user", one.scope)
    found = [e.event for e in envelopes(settings) if e.key == key]
    assert [e.content for e in found if isinstance(e, MemoryWritten)] == ["first", "second"]


def test_starting_a_known_session_adds_no_event(redis_client, settings):
    """G2: naming a session again starts it no second time."""
    for _ in range(3):
        with MemoryBus.connect(settings) as bus:
            bus.session("s", warm=False)
            assert bus.flush()
    assert log_length(redis_client, settings) == 1


def test_injected_recall_is_never_remembered(redis_client, make_settings):
    """G8: what a memory block brought into a prompt does not come back as something said."""
    settings = make_settings(**recorded("Transactional"))
    block = "<memory-context>\nroses\n</memory-context>"
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        bus.session("s", warm=False).turn_completed(f"before {block} after", block)
        assert bus.flush()
        wait_applied(redis_client, settings)
    (text,) = texts(home(settings))
    assert "roses" not in text
    assert text.startswith("before")


def test_a_compression_is_split_to_fit(make_settings, redis_url):
    """G10: more messages than one event may carry are split; one too large is refused."""
    settings = make_settings(event_max_bytes=4_000)
    messages = [{"role": "user", "content": f"{number} " + "x" * 900} for number in range(12)]
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.compressing(messages)
        assert bus.flush()
        with pytest.raises(EventTooLarge):
            session.compressing([{"role": "user", "content": "y" * 5_000}])
    found = [e.event for e in envelopes(settings)]
    parts = [e.messages for e in found if isinstance(e, ContextCompressing)]
    assert len(parts) > 3
    assert [m["content"].split()[0] for part in parts for m in part] == [f"{n}" for n in range(12)]
    assert redis_url


def test_the_first_turn_has_memories(redis_server, make_settings):
    """G9: a session that starts with a title asks for memories at once."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", title="the walnut tree")
        client = redis_server.client()
        want = f"{settings.namespace}:want:{{{session.slot}}}"
        wait_until(lambda: client.exists(want), "the recall is asked for")
        quiet = bus.session("quiet", title="the walnut tree", warm=False)
        assert bus.flush()
        assert not client.exists(want.replace(session.slot, quiet.slot))


def test_a_url_is_enough(redis_url, tmp_path, monkeypatch):
    """G10: `connect` takes the URL of a Redis; a wrong one is a clear error."""
    monkeypatch.setenv("MEMORYBUS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MEMORYBUS_NAMESPACE", "byurl")
    with MemoryBus.connect(redis_url) as bus:
        bus.session("s", warm=False)
        assert bus.flush("logged", 10)
    monkeypatch.setenv("MEMORYBUS_PARTITIONS", "many")
    with pytest.raises(ConfigError, match="partitions"):
        MemoryBus.connect(redis_url)


def test_the_async_form_does_the_same(settings):
    """G9: the async facade publishes, branches, flushes and reads without blocking the loop."""

    async def live() -> tuple[str, str, bool, str]:
        async with AsyncMemoryBus.connect(settings) as bus:
            session = await bus.session("s", warm=False)
            receipts = await asyncio.gather(
                *(session.turn_completed(f"{number}", "", ordinal=number) for number in range(20))
            )
            branch = await session.branch("b")
            await branch.turn_completed("child", "")
            await branch.queue_prefetch("what was said")
            done = await bus.flush("logged", 10)
            return receipts[0].level, branch.ref.root, done, await session.prefetch()

    assert asyncio.run(live()) == ("spooled", "s", True, "")
    assert len(envelopes(settings)) == 23


def test_async_errors_arrive(make_settings):
    """G10: what the bus raises, an awaited call raises."""

    async def live() -> None:
        settings = make_settings(url="redis://127.0.0.1:1/0", spool_max_bytes=3_000)
        async with AsyncMemoryBus.connect(settings) as bus:
            session = await bus.session("s", warm=False)
            for _ in range(20):
                await session.turn_completed("x" * 400, "")

    with pytest.raises(SpoolFull):
        asyncio.run(live())
