"""What stores of facts do with memories that age, are pinned or forgotten, in SQLite and Postgres.

A state may come before its fact, and from several order keys: a rebuild gives the same state (G8).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers.providers.digested import Told, apply_batch, interleaved
from memorybus.events import (
    AnyEvent,
    Derived,
    MemoryCurated,
    MemoryWritten,
    Scope,
    ToolCalled,
    TurnCompleted,
)
from memorybus.ids import derived_id
from memorybus.testing import FakeClock
from memorybus_providers.base import HookContext, ProviderConfig, RecallContext, RecallScope
from memorybus_providers.fact_provider import FactProvider
from memorybus_providers.registry import create
from msgspec.structs import replace

ME = Scope(agent="coder", user="ann")
MINE = RecallScope.own(ME)
DAY = 86_400.0


class Store:
    """A store of one kind, to which events are applied one after the other."""

    def __init__(self, provider: FactProvider) -> None:
        self.provider = provider
        self.told: list[Told] = []
        self._clock = provider.config.clock

    def tell(self, session: str, event: AnyEvent) -> None:
        told = Told.of(session, event, len(self.told) + 1)
        self._clock.advance(1)
        self.apply(Told(replace(told.envelope, at=self._clock.now_ms())))

    def apply(self, told: Told) -> None:
        """Apply an event as it was told before."""
        apply_batch(self.provider, [told], len(self.told))
        self.told.append(told)

    def call(self, tool: str, session: str = "a", **arguments: Any) -> Mapping[str, Any]:
        """Call a writing tool as an event, and return its first result, which is kept."""
        called = ToolCalled(provider="facts", tool=tool, arguments=arguments)
        self.tell(session, called)
        envelope = self.told[-1].envelope
        with self.provider.opened.writing() as parts:
            return dict(json.loads(parts.results.get(envelope.id) or "{}"))

    def read(self, tool: str, **arguments: Any) -> Any:
        told = Told.of("reader", ToolCalled(provider="facts", tool=tool), 1).envelope
        ctx = HookContext(ME, told.session, derived_id("read"), None, told.at, 5.0)  # type: ignore[arg-type]
        return self.provider.handle_tool_call(tool, arguments, ctx)

    def ids(self, query: str) -> dict[str, str]:
        """Return the ids of the facts that a search finds, by their texts."""
        results = self.read("memory_search", query=query)["results"]
        return {fact["text"]: fact["id"] for fact in results}

    def prompt(self, query: str) -> list[str]:
        context = RecallContext(MINE, budget=2_000)
        return [one.text for one in self.provider.prefetch(query, context)]

    def states(self) -> dict[str, str]:
        """Return the states of the memories that a curator looks after, by their texts."""
        return {one.text: one.state for one in self.provider.curated(MINE)}


Opened = Callable[[], Store]


@pytest.fixture(params=["holographic", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Return how fresh stores of a kind are opened; all are closed at the end."""
    stores: list[Store] = []
    clock = FakeClock()

    def open_store() -> Store:
        options = {}
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            options = {"url": server.url(server.database())}
        home = tmp_path / str(len(stores))
        config = ProviderConfig(name="facts", home=home, options=options, clock=clock)
        provider = create(request.param, config)
        assert isinstance(provider, FactProvider)
        provider.open()
        stores.append(Store(provider))
        return stores[-1]

    yield open_store
    for store in stores:
        store.provider.shutdown()


@pytest.fixture
def store(opened: Opened) -> Store:
    """Return a store with two notes, an entry of the agent's memory, and a turn."""
    store = opened()
    store.tell("a", ToolCalled(provider="facts", tool="memory_add", arguments=note("tea at four")))
    store.tell("a", ToolCalled(provider="facts", tool="memory_add", arguments=note("tea at nine")))
    store.tell("a", MemoryWritten(action="add", store="memory", content="tea is in the tin"))
    store.tell("b", TurnCompleted(user="my tea is cold", assistant="make another"))
    return store


def note(content: str) -> dict[str, str]:
    """Return the arguments of ``memory_add``."""
    return {"content": content}


def curated(fact: str, after: Any, successor: str = "") -> MemoryCurated:
    """Return an event of the curator."""
    return MemoryCurated(
        memory=fact, before="active", after=after, reason="old", successor=successor
    )


def test_an_archived_memory_is_in_no_prompt_but_tools_find_it(store):
    """Archived: not in prefetch and not in the system prompt; tools find and mark it."""
    fact = store.ids("tea at four")["tea at four"]
    assert "tea at four" in store.provider.system_prompt_block(MINE)

    store.tell("a", curated(fact, "archived"))

    assert "tea at four" not in store.prompt("When is tea?")
    assert "tea at nine" in store.prompt("When is tea?")
    assert "tea at four" not in store.prompt("")
    block = store.provider.system_prompt_block(MINE)
    assert "tea at four" not in block
    assert "tea at nine" in block
    marked = {one["text"]: one.get("archived") for one in store.read("memory_list")["results"]}
    assert marked == {"tea at four": True, "tea at nine": None, "tea is in the tin": None}


def test_a_derived_fact_ages_as_a_note_does(store, opened):
    """Archived: in no prompt, found and marked by tools, back by use; a rebuild gives the same."""
    store.tell("a", Derived(kind="fact", text="tea comes from the hills", cause="c", deriver="d"))
    (fact,) = (one.name for one in store.provider.curated(MINE) if "hills" in one.text)
    store.tell("a", curated(fact, "archived"))

    assert "tea comes from the hills" not in store.prompt("Where does tea come from?")
    assert "hills" not in store.provider.system_prompt_block(MINE)
    again = opened()
    for told in store.told:
        again.apply(told)
    assert again.states() == store.states()
    assert list(again.provider.digest()) == list(store.provider.digest())

    marked = {one["text"]: one.get("archived") for one in store.read("memory_list")["results"]}
    assert marked["tea comes from the hills"] is True
    store.provider.config.clock.advance(2 * DAY)
    store.ids("tea from the hills")
    assert "tea comes from the hills" in store.prompt("Where does tea come from?")


def test_a_stale_memory_is_recalled_as_before(store):
    """Stale is only a mark: the memory is in prompts until it is archived."""
    store.tell("a", curated(store.ids("tea at four")["tea at four"], "stale"))

    assert store.states()["tea at four"] == "stale"
    assert "tea at four" in store.prompt("When is tea?")


def test_an_archived_memory_that_a_tool_lists_is_in_prompts_again(store):
    """It comes back by use: at once for prompts, and for the curator by the day of its use."""
    fact = store.ids("tea at four")["tea at four"]
    store.tell("a", curated(fact, "archived"))
    store.provider.config.clock.advance(2 * DAY)

    assert store.ids("tea at four")["tea at four"] == fact

    assert "tea at four" in store.prompt("When is tea?")
    (used,) = (one.used for one in store.provider.curated(MINE) if one.name == fact)
    assert used == store.provider.config.clock.now_ms()


def test_a_repetition_does_not_come_back_by_use(store):
    """What another memory stands for stays out of prompts, also after a tool has listed it."""
    ids = store.ids("tea")
    store.tell("a", curated(ids["tea at four"], "archived", ids["tea at nine"]))
    store.provider.config.clock.advance(2 * DAY)
    store.ids("tea at four")

    assert "tea at four" not in store.prompt("When is tea?")


def test_a_prompt_notes_the_day_of_use_once(store):
    """A prompt that recalls a note twice on a day writes once; on the next day again."""
    clock, noted = store.provider.config.clock, []
    original = store.provider.opened.note_used

    def note_used(rows, now):
        noted.append(len(rows))
        original(rows, now)

    store.provider.opened.note_used = note_used

    for seconds in (0, 3_600, 1.2 * DAY):
        clock.advance(seconds)
        store.prompt("tea at nine")

    assert noted == [3, 3]


def test_instructions_and_what_was_said_do_not_age(store):
    """The curator sees notes and entries; a standing instruction and a turn are not among them."""
    store.tell("c", TurnCompleted(user="From now on, always answer in French.", assistant="Oui."))

    assert set(store.states()) == {"tea at four", "tea at nine", "tea is in the tin"}


def test_the_latest_change_counts_in_any_order(store, opened):
    """G8: of changes from several order keys the latest counts, and a state waits for its fact."""
    fact = store.ids("tea at four")["tea at four"]
    store.tell("a", curated(fact, "archived"))
    assert store.call("memory_pin", session="c", fact_id=fact)["pinned"] is True
    late = store.told[-2]
    again = opened()
    for told in [store.told[-1], late, *store.told[:-2]]:
        again.apply(told)

    assert store.states()["tea at four"] == again.states()["tea at four"] == "pinned"
    assert list(again.provider.digest()) == list(store.provider.digest())


def test_a_pin_can_be_taken_back(store):
    """`memory_pin` with ``pinned`` false lets a memory age again."""
    fact = store.ids("tea at four")["tea at four"]
    store.call("memory_pin", fact_id=fact)
    store.call("memory_pin", fact_id=fact, pinned=False)

    assert store.states()["tea at four"] == "active"


@pytest.mark.parametrize("text", ["tea at four", "my tea is cold"])
def test_what_is_forgotten_is_gone_and_a_rebuild_does_not_bring_it_back(store, opened, text):
    """G8: a tombstone deletes one memory, whether it comes before the memory or after it."""
    others = {"tea at four", "tea at nine", "tea is in the tin"} - {text}
    assert store.call("memory_forget", session="c", fact_id=store.ids("tea")[text])["ok"] is True
    again = opened()
    for told in [store.told[-1], *store.told[:-1]]:
        again.apply(told)

    for one in (store, again):
        found = set(one.ids("tea"))
        assert others <= found
        assert text not in found
        assert text not in {kept.text for kept in one.provider.export(MINE)}
    assert list(again.provider.digest()) == list(store.provider.digest())


def test_what_is_said_again_after_it_was_forgotten_is_kept(store):
    """A tombstone ends what was kept until then, and not what is kept later."""
    fact = store.ids("tea")["tea at four"]
    store.call("memory_forget", fact_id=fact)
    assert "tea at four" not in store.ids("tea")

    store.tell("d", ToolCalled(provider="facts", tool="memory_add", arguments=note("tea at four")))

    assert store.ids("tea")["tea at four"] == fact


@pytest.mark.parametrize(
    ("tool", "text", "why"),
    [
        ("memory_forget", "tea is in the tin", "your own memory files"),
        ("memory_pin", "my tea is cold", "never ages"),
        ("memory_pin", "", "no fact"),
        ("memory_forget", "", "no fact"),
    ],
)
def test_what_a_tool_cannot_do_it_says(store, tool, text, why):
    """An entry of the agent's files, what was said, and an unknown id get a reason."""
    result = store.call(tool, fact_id=store.ids("tea").get(text, "f" * 14))

    assert result["ok"] is False
    assert why in result["error"]


def test_a_forgotten_person_has_no_states_left(store, opened):
    """Nothing of the states stays of a person whose memories are erased."""
    store.tell("a", curated(store.ids("tea at four")["tea at four"], "archived"))
    store.provider.forget(MINE)

    assert list(store.provider.digest()) == list(opened().provider.digest())
    assert store.states() == {}


@pytest.mark.parametrize("seed", range(5))
def test_any_mix_of_keys_gives_the_same_state(store, opened, seed):
    """G8: notes, states, pins and tombstones applied in another mix of keys give one digest."""
    ids = store.ids("tea")
    for number, (text, fact) in enumerate(sorted(ids.items())):
        store.tell("a", curated(fact, "archived"))
        store.call("memory_pin", session="c", fact_id=fact, pinned=number % 2 == 0)
        if number % 2:
            store.call("memory_forget", session="d", fact_id=fact)
        arguments = note(text)
        store.tell("e", ToolCalled(provider="facts", tool="memory_add", arguments=arguments))
    again = opened()
    for told in interleaved(store.told, Random(seed)):
        again.apply(told)

    assert list(again.provider.digest()) == list(store.provider.digest())
