"""LangGraph's own store interface on the bus, in a graph and by itself."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.stories.published import published
from helpers.stories.scenario import patient, wait_applied, worker
from memorybus import MemoryBus, store_key
from memorybus.config.settings import Settings
from memorybus.errors import NoWorker
from memorybus.events import MemoryWritten

pytest.importorskip("langgraph", reason="the extra langgraph is not installed")
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    InvalidNamespaceError,
    PutOp,
    SearchOp,
)
from memorybus_frameworks.langgraph_store import MemoryStore

pytestmark = pytest.mark.timeout(180)

ANN, BOB = ("ann", "likes"), ("bob", "likes")


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    options = {"providers": ("holographic", "builtin"), "partitions": 2}
    return patient(make_settings(url=redis_url, recall_wait=20.0, recall_timeout=40.0, **options))


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


def keys(items: object) -> list[str]:
    return [item.key for item in items]


def test_an_item_is_written_read_and_deleted(bus, settings):
    """An item is there at once, with its times, until it is deleted; then it may come again."""
    store = MemoryStore(bus)
    store.put(ANN, "tea", {"text": "Ann likes tea.", "cups": 3})
    first = store.get(ANN, "tea")
    assert first.value == {"text": "Ann likes tea.", "cups": 3}
    store.put(ANN, "tea", {"text": "Ann likes mint tea."})
    changed = store.get(ANN, "tea")
    assert changed.created_at == first.created_at
    assert changed.updated_at >= first.updated_at
    store.delete(ANN, "tea")
    assert store.get(ANN, "tea") is None
    store.put(ANN, "tea", {"text": "Ann likes tea.", "cups": 3})
    assert store.get(ANN, "tea").value["cups"] == 3
    assert [write.action for write in published(settings, MemoryWritten)] == [
        "add",
        "replace",
        "remove",
        "add",
    ]


def test_the_items_of_two_people_never_meet_across_a_restart(
    bus, settings, make_settings, spawn, redis_client
):
    """Another process on another host reads and searches a person's items, and nobody else's."""
    worker(spawn, settings, jobs=1)
    store = MemoryStore(bus)
    store.put(ANN, "pets", {"text": "The heron Fig sleeps in the boat house."})
    store.put(BOB, "pets", {"text": "The heron Olive sleeps in the boat house."})
    store.put(ANN, "food", {"text": "Pancakes on Sunday."})
    assert bus.flush("logged", 20)
    wait_applied(redis_client, settings, "holographic")
    other = msgspec.structs.replace(settings, data_dir=make_settings().data_dir)
    with MemoryBus.connect(other) as elsewhere:
        store = MemoryStore(elsewhere, timeout=30)
        assert sorted(keys(store.search(("ann",)))) == ["food", "pets"]
        found = store.search(("ann",), query="Where does the heron sleep?")
        assert keys(found)[0] == "pets"
        assert [item.value["text"] for item in found if "Olive" in item.value["text"]] == []
        assert found[0].score is not None
        fresh = {"text": "The otter Reed sleeps in the reeds."}
        store.put(ANN, "otter", fresh)
        assert keys(store.search(("ann",), query="Where does the otter sleep?"))[0] == "otter"


def test_search_follows_the_interface(bus):
    """Prefixes end at labels; filters, order and pages are those of LangGraph's own stores."""
    store = MemoryStore(bus)
    for n in range(4):
        store.put(("ann", "a"), f"k{n}", {"n": n, "kind": "odd" if n % 2 else "even"})
    store.put(("ann", "ab"), "other", {"n": 9})
    assert keys(store.search(("ann", "a"), filter={"kind": "odd"})) == ["k3", "k1"]
    assert keys(store.search(("ann", "a"), filter={"n": {"$gte": 1, "$lt": 3}})) == ["k2", "k1"]
    assert keys(store.search(("ann", "a"), limit=2, offset=1)) == ["k2", "k1"]
    assert store.list_namespaces(prefix=("ann",)) == [("ann", "a"), ("ann", "ab")]
    assert store.list_namespaces(prefix=("ann",), suffix=("ab",)) == [("ann", "ab")]
    assert store.list_namespaces(prefix=("ann",), max_depth=1) == [("ann",)]
    with pytest.raises(NoWorker):
        store.search(("ann",), query="What is odd?")


def test_a_namespace_names_one_person(bus):
    """What would reach several people's items is refused, also where `batch` is called itself."""
    store = MemoryStore(bus, namespace=("memories", "{user}"))
    store.put(("memories", "ann"), "k", {"text": "mine"})
    for refused in ((), ("memories",), ("other", "ann")):
        with pytest.raises(InvalidNamespaceError, match="names no person"):
            store.search(refused)
        with pytest.raises(InvalidNamespaceError):
            store.batch([SearchOp(refused)])
    for path in ((), ("memories", "*")):
        with pytest.raises(InvalidNamespaceError, match="names no person"):
            store.list_namespaces(prefix=path)
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("memories", "a.b"), "k", {"text": "x"})])
    with pytest.raises(InvalidNamespaceError, match="names no person"):
        MemoryStore(bus, namespace=("memories",))
    with pytest.raises(NotImplementedError, match="ttl"):
        store.batch([PutOp(("memories", "ann"), "k", {"text": "x"}, ttl=5)])


def test_a_node_that_runs_again_writes_once(bus, settings):
    """A graph whose node fails after its write is run again: the write is not repeated (G2)."""
    tries: list[int] = []

    def remember(state: dict, *, store: BaseStore) -> dict:
        store.put(ANN, "tea", {"text": "Ann likes tea."})
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("the node fails")
        return {"done": True}

    graph = StateGraph(dict)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    compiled = graph.compile(store=MemoryStore(bus))
    with pytest.raises(ValueError, match="the node fails"):
        compiled.invoke({"done": False})
    assert asyncio.run(compiled.ainvoke({"done": False}))["done"]
    assert bus.flush("logged", 20)
    assert [write.content for write in published(settings, MemoryWritten)] == ["Ann likes tea."]


def test_of_two_items_that_say_the_same_one_stays(bus, settings, spawn, redis_client):
    """A text that two items have stays with the providers until the last of them is deleted."""
    worker(spawn, settings, jobs=1)
    store = MemoryStore(bus, timeout=30)
    for key in ("a", "b"):
        store.put(ANN, key, {"text": "The heron sleeps in the boat house."})
    store.delete(ANN, "a")
    assert keys(store.search(("ann",), query="Where does the heron sleep?")) == ["b"]
    store.delete(ANN, "b")
    assert bus.flush("logged", 20)
    for name in settings.providers:
        wait_applied(redis_client, settings, name)
    assert "heron" not in bus.recall("Where does the heron sleep?", user="ann", timeout=30).text


def test_what_is_removed_elsewhere_is_gone(bus):
    """A memory that a person or a tool removes by its words is no item any more."""
    store = MemoryStore(bus)
    store.put(ANN, "pin", {"text": "The PIN is 4711."})
    bus.session("s", user="ann", warm=False).memory_written("remove", store="user", old_text="4711")
    assert store.get(ANN, "pin") is None
    assert asyncio.run(store.asearch(("ann",))) == []
    store.put(ANN, "pin", {"text": "The PIN is 4711."})
    assert asyncio.run(store.aget(ANN, "pin")) is not None


@pytest.mark.parametrize("old_text", ["", " "])
def test_a_write_that_names_nothing_removes_nothing(bus, old_text):
    """As the providers have it: an empty text is part of every item, and means none."""
    store, session = MemoryStore(bus), bus.session("s", user="ann", warm=False)
    store.put(ANN, "tea", {"text": "Ann likes tea."})
    blank = MemoryWritten(action="remove", store="user", old_text=old_text)
    session.publish(blank, key=store_key("user", session.scope))
    assert keys(store.search(("ann",))) == ["tea"]


@pytest.mark.parametrize(
    ("value", "index", "text"),
    [
        ({"text": "Ann likes tea."}, None, "Ann likes tea."),
        ({"drink": "tea", "cups": 3}, None, "drink: tea; cups: 3"),
        ({"drink": "tea", "note": "hot"}, ["note"], "hot"),
        ({"note": ""}, None, '{"note":""}'),
    ],
)
def test_providers_learn_a_value_as_text(bus, settings, value, index, text):
    """The providers remember a value's fields as text, or those that are indexed."""
    store = MemoryStore(bus)
    store.put(ANN, "k", value, index=index)
    assert store.get(ANN, "k").value == value
    assert [write.content for write in published(settings, MemoryWritten)] == [text]
