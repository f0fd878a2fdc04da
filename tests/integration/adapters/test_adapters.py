"""Providers of other contracts behind the bus: real worker, real recall processes, unchanged code.

The providers are those of ``tests/contract/``, which know nothing of memorybus.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.redis.served import served
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.recall.operator_recall import recall_now

pytestmark = pytest.mark.xdist_group("adapters")

NOTES = {"kind": "ethos:contract.ethos_example:MarkdownNotes", "dir": "{home}/notes"}
DIARY = {"kind": "registry:contract.registry_example:Notes", "dir": "{home}/diary"}
ROWS = {"kind": "ethos:contract.ethos_example:Rows", "file": "{home}/rows"}
PATIENT: Any = {"recall_wait": 20.0, "recall_timeout": 30.0}
"""The one recall that is asked for waits for the lanes, however slow the machine is: a quarter of
`recall_wait` without progress is the most that a recall waits."""


@pytest.fixture(scope="module", name="adapted")
def _adapted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Run a worker with a provider of either contract and one recall process for each."""
    tables = {"notes": NOTES, "diary": DIARY, "rows": ROWS}
    options = {"providers": tuple(tables), "provider": tables}
    with served(tmp_path_factory, "adapted", **options) as world:
        yield world.settings


def test_both_remember_and_recall(adapted):
    """A write and a turn go through the lanes, and come back warm in the next session's prompt."""
    with MemoryBus.connect(adapted) as bus:
        first = bus.session("first", agent="coach", user="alice", warm=False)
        first.memory_written("add", "Alice likes green tea.", store="user")
        first.turn_completed("My cat is called Miso.", "A fine name for a cat.", ordinal=0)
        assert bus.flush()

        second = bus.session("second", agent="coach", user="alice", warm=False)
        second.queue_prefetch("Which tea, and which cat?")

        def block() -> str:
            found = second.prefetch()
            return found if "From notes:" in found and "Miso" in found else ""

        found = wait_until(block, "both have answered", 30)

    assert "From notes:\n- Alice likes green tea." in found
    assert "From diary:" in found


def test_a_later_session_recalls_the_memory_store_of_an_earlier_one(adapted):
    """What a chat noted is there in its next session, changed as it was, and in nobody else's."""
    with MemoryBus.connect(adapted) as bus:
        first = bus.session("monday", agent="coach", user="bea", platform="cli", warm=False)
        first.memory_written("add", "The boat is called Otter.", tool_call_id="a")
        first.memory_written("add", "The boat leaks.", tool_call_id="b")
        second = bus.session("tuesday", agent="coach", user="bea", platform="tui", warm=False)
        second.memory_written("remove", old_text="leaks", tool_call_id="c")
        assert bus.flush()

        def rows(user: str) -> list[str]:
            question = "What about the boat?"
            found = bus.recall(question, agent="coach", user=user, providers=["rows"], timeout=20)
            return [item.text for item in found.results]

        wait_until(lambda: rows("bea") == ["The boat is called Otter."], "all is applied", 30)
        assert rows("bob") == []


def test_a_recall_is_given_the_turns_of_its_session(make_settings, redis_url, spawn):
    """`enrich_turn` gets in a recall process what the lane's process has heard, and the prompt."""
    table = {"listening": {"kind": "registry:contract.registry_example:Listening"}}
    settings = make_settings(url=redis_url, providers=("listening",), provider=table, **PATIENT)
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", agent="coach", user="alice", warm=False)
        session.turn_completed("My boat is called Otter.", "A fine name.", ordinal=0)
        assert bus.flush()
        session.queue_prefetch("How fast is it?")
        found = wait_until(session.prefetch, "it has answered", 30)
    assert "Before 'How fast is it?' came 'A fine name.'" in found


def test_recall_is_the_askers_own(adapted):
    """Another person recalls nothing of it; an operator who asks for everyone's does."""
    with MemoryBus.connect(adapted) as bus:
        session = bus.session("s", agent="coach", user="cleo", warm=False)
        session.memory_written("add", "Cleo likes white tea.", store="user", tool_call_id="c")
        assert bus.flush()

        def everyones() -> list[str]:
            found = recall_now(
                adapted,
                SYSTEM,
                "Who likes white tea?",
                agent=None,
                user=None,
                workspace=None,
                session=None,
                providers=None,
                budget=2_000,
                timeout=10.0,
            )
            kept = [item.text for item in found.results if item.provider == "notes"]
            return [text for text in kept if "Cleo" in text]

        wait_until(lambda: everyones() == ["Cleo likes white tea."], "it is applied", 20)
        of_bob = bus.recall("Who likes white tea?", agent="coach", user="bob", timeout=20)

    assert (of_bob.results, of_bob.missing) == ((), {})
