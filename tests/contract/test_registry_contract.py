"""A provider of the nine-member contract works behind the bus, and so does a registry of them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import registry_example as example
from helpers.processes.stalls import STANDSTILL
from helpers.processes.time_up import TimeUp
from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import ConfigError, Permanent, Transient, Unavailable
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    Scope,
    SessionRef,
    TurnCompleted,
)
from memorybus_providers import registry as kinds
from memorybus_providers.adapters import registry as hosting
from memorybus_providers.adapters.conversations import Conversations
from memorybus_providers.adapters.hosted import Caller
from memorybus_providers.adapters.registry import plain_message
from memorybus_providers.adapters.registry_members import RegisteredProvider, Registry, kept_alone
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallContext
from memorybus_providers.contract import ProviderContract
from memorybus_providers.contract.samples import (
    HOSTILE_IDS,
    SESSION,
    SampleStep,
    feed,
    hook_context,
    recall_context,
    steps,
)
from memorybus_providers.owners import Owner, session_key
from msgspec.structs import replace

ALICE = Scope(agent="coach", user="alice")
BOB = Scope(agent="coach", user="bob")
TURN = TurnCompleted(user="I like tea.", assistant="Noted.", ordinal=0)

Opened = Callable[..., MemoryProvider]
Registered = Callable[..., Registry]


@pytest.fixture
def caller() -> Iterator[Caller]:
    """Return a caller, its loop stopped at the end."""
    caller = Caller("test")
    yield caller
    caller.close()


@pytest.fixture
def registered(caller: Caller) -> Registered:
    """Return what registers and starts providers."""

    def registered(
        *providers: Any, key: str = "s", config: Any = None, clock: Clock = SYSTEM
    ) -> Registry:
        registry = Registry(caller, clock)
        for provider in providers:
            registry.register(provider)
        registry.initialize_all(key, (config or {}).get)
        return registry

    return registered


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Return what opens the bus's provider of some providers; shut down at the end."""
    with ExitStack() as closing:

        def opened(*made: Any, **options: Any) -> MemoryProvider:
            fields = {"kind": "registry:test", "factory": staticmethod(lambda: list(made))}
            hosted: Any = type("Hosted", (hosting.RegistryProvider,), fields)
            provider = hosted(ProviderConfig(name="notes", home=tmp_path, options=options))
            provider.open()
            closing.callback(provider.shutdown)
            return provider

        yield opened


class TestNotes(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        options = {"dir": "{home}/notes"}
        config = ProviderConfig(name="notes", home=tmp_path, options=options)
        return kinds.create("registry:registry_example:Notes", config)


def in_session(scope: Scope, session: SessionRef = SESSION) -> RecallContext:
    """Return the context of a session's recall."""
    return replace(recall_context(scope), session=session)


def names(providers: Sequence[RegisteredProvider]) -> list[str]:
    """Return the names of providers."""
    return [provider.name for provider in providers]


# -- the registry -------------------------------------------------------------------------------


def test_the_contract_has_nine_members():
    """What keeps the contract is recognised by its members alone."""
    assert isinstance(example.Bare(), RegisteredProvider)
    assert not isinstance(example.Incomplete(), RegisteredProvider)


def test_a_second_provider_of_a_name_is_refused(caller):
    """Names tell providers apart, so none is given twice."""
    registry = Registry(caller)
    registry.register(example.Bare("a"))

    with pytest.raises(ValueError, match="duplicate"):
        registry.register(example.Bare("a"))


def test_nobody_is_registered_after_the_start(registered):
    """A registry that has begun stays as it is."""
    registry = registered(example.Bare("a"))

    with pytest.raises(RuntimeError):
        registry.register(example.Bare("b"))


def test_who_cannot_start_is_dropped(registered):
    """An unavailable or failing provider is left out; the others serve."""
    registry = registered(
        example.Unavailable("gone"), example.FailsToStart("down"), example.Bare("here")
    )

    assert names(registry.active_providers) == ["here"]
    assert registry.enrich_turn("q", []) == [("here memory", "here knows.")]


def test_nobody_left_is_an_outage(registered):
    """If none can be started, events wait for the backend instead of being lost (G6)."""
    with pytest.raises(Unavailable, match="no backend"):
        registered(example.FailsToStart("down"))


@pytest.mark.parametrize(
    ("suppresses", "stores"),
    [
        (True, {"memory", "user"}),
        (False, set()),
        ({"memory": True, "user": False, "other": True}, {"memory"}),
    ],
)
def test_stores_that_are_kept_alone(suppresses, stores):
    """A plain True stands for the memory and the user store, a mapping tells them apart."""
    assert kept_alone({"suppresses_local_writes": suppresses}) == stores
    assert kept_alone({}) == set()


def test_all_are_asked_side_by_side(registered):
    """Two providers that each wait for the other both answer."""
    barrier = threading.Barrier(2)
    registry = registered(example.Meeting("a", barrier), example.Meeting("b", barrier))

    assert registry.enrich_turn("q", []) == [("a memory", "a knows."), ("b memory", "b knows.")]


def test_who_is_late_is_left_out(registered):
    """A provider past the deadline costs its own answer, and no more time than that."""
    stuck = example.Stuck()
    registry = registered(stuck, example.Bare("quick"), clock=TimeUp(looks=2))

    found = registry.enrich_turn("q", [])  # who waited on would get the late answer, too
    stuck.go.set()

    assert found == [("quick memory", "quick knows.")]


def test_who_still_answers_is_not_asked_again(registered):
    """A provider that hangs holds one thread, however often its registry is asked (G10)."""
    stuck, clock = example.Stuck(), TimeUp(looks=2)
    registry = registered(stuck, example.Bare("quick"), clock=clock)

    registry.enrich_turn("q", [])
    wait_until(lambda: stuck.asked, "it is being asked")
    clock.looks = 1_000
    for _ in range(3):
        assert registry.enrich_turn("q", []) == [("quick memory", "quick knows.")]
    assert len(stuck.asked) == 1

    stuck.go.set()
    wait_until(lambda: len(registry.enrich_turn("q", [])) == 2, "it answers again")


def test_who_fails_is_left_out_of_an_answer(registered):
    """One provider's error is not the others'."""
    registry = registered(example.Failing(), example.Bare("good"))

    assert registry.enrich_turn("q", []) == [("good memory", "good knows.")]


def test_all_failing_is_an_error(registered):
    """An error is not "no memories": nothing is cached then."""
    registry = registered(example.Failing(error=TimeoutError("slow")))

    with pytest.raises(Transient):
        registry.enrich_turn("q", [])


def test_a_failed_write_is_told_again_to_who_failed(registered):
    """The others take the event once; another try calls only those that have not taken it."""
    good, bad = example.Bare("good"), example.Failing("bad", ConnectionError("down"))
    registry = registered(bad, good)

    for _ in range(2):
        with pytest.raises(Transient):
            registry.tell("e1", "on_turn_complete", "u", "a", deadline=5)
    registry.tell("e2", "on_compress", [], 1, deadline=5)

    assert good.told == [("u", "a"), ([], 1)]


def test_a_failure_that_may_pass_is_told_before_one_that_will_not(registered):
    """An event is not parked while another try may still serve somebody."""
    registry = registered(example.Failing("a"), example.Failing("b", TimeoutError()))

    with pytest.raises(Transient):
        registry.tell("e", "on_turn_complete", "u", "a", deadline=5)


def test_shutting_down_leaves_nobody_out(registered):
    """One that raises at its shutdown keeps no other from its own; twice is once."""
    bad: Any = example.Bare("bad")
    bad.shutdown = lambda: 1 / 0
    good = example.Bare("good")
    registry = registered(bad, good)

    registry.shutdown_all()
    registry.shutdown_all()

    assert good.ended == 1


def test_coroutines_will_do(registered):
    """Every hook may be a coroutine."""
    provider = example.Asynchronous("slow")
    registry = registered(provider)
    registry.tell("e", "on_turn_complete", "u", "a", deadline=5)

    assert registry.enrich_turn("q", []) == [("slow memory", "slow knows.")]
    registry.shutdown_all()
    assert (provider.told, provider.ended) == ([("u", "a")], 1)


# -- behind the bus -----------------------------------------------------------------------------


def test_hooks_get_what_the_contract_says(opened):
    """Turns, writes and compressions arrive with the contract's arguments and plain messages."""
    bare = example.Bare()
    provider = opened(bare)
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]
    events = (
        TURN,
        MemoryWritten(action="add", store="user", content="tea"),
        MemoryWritten(action="remove", store="memory", old_text="rum"),
        ContextCompressing(messages=({"role": "user", "content": parts},), compression_count=2),
    )

    feed(provider, steps(*events, scope=ALICE))

    assert bare.told == [
        ("I like tea.", "Noted."),
        ("add", "user", "tea", None),
        ("remove", "memory", None, "rum"),
        ([{"role": "user", "content": "see"}], 2),
    ]


def test_a_turn_is_enriched_with_its_conversation_and_this_prompt(opened):
    """The session's turns come as they were said, the prompt behind them; nobody else's do."""
    bare = example.Bare()
    provider = opened(bare)
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    with_tools = TurnCompleted(user="And coffee?", messages=({"role": "user"}, called), ordinal=1)
    feed(provider, steps(TURN, with_tools, scope=ALICE))
    feed(provider, steps(TurnCompleted(user="Rum.", assistant="Arr."), scope=BOB, first=3))

    provider.prefetch("Which one?", in_session(ALICE))
    provider.prefetch("Which one?", recall_context(ALICE))  # an operator's, of no session

    prompt = {"role": "user", "content": "Which one?"}
    said = [
        {"role": "user", "content": "I like tea."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user"},
        called,
    ]
    assert bare.asked == [("Which one?", [*said, prompt]), ("Which one?", [prompt])]


def test_what_was_undone_is_no_part_of_the_conversation(opened):
    """With its next epoch a session begins anew: what it took back is kept nowhere here."""
    bare = example.Bare()
    provider = opened(bare)
    feed(provider, steps(TurnCompleted(user="My PIN is 4711.", assistant="Oh."), scope=ALICE))
    undone = replace(SESSION, epoch=1)
    provider.prefetch("Hello?", in_session(ALICE, undone))
    feed(provider, [SampleStep(2, TURN, ALICE, undone)])

    ((_, messages),) = bare.asked
    assert messages == [{"role": "user", "content": "Hello?"}]
    files = provider.config.home.rglob("*.json")
    assert [file.name for file in files if "4711" in file.read_text()] == []


def test_a_turn_that_comes_again_is_said_once(opened):
    """A turn is told again until all have taken it, and stands in the conversation once."""
    bad = example.Failing("bad", ConnectionError("down"))
    provider = opened(bad, example.Bare("good"))
    for _ in range(2):
        with pytest.raises(Transient):
            feed(provider, steps(TURN, scope=ALICE))
    conversation = Conversations(provider.config.home).messages_of(
        Owner("coach", "alice", ""), SESSION
    )
    assert [message["content"] for message in conversation] == ["I like tea.", "Noted."]


def test_hidden_tools_are_neither_offered_nor_run(tmp_path):
    """The model sees the tools that `tool_names` names; a call of another is refused in words."""
    config = ProviderConfig(name="tea", home=tmp_path)
    provider = kinds.create("registry:registry_example:Tooled", config)
    assert provider.capabilities.tools
    assert [schema["name"] for schema in provider.get_tool_schemas()] == ["tea_recall"]

    provider.open()
    context = hook_context(SampleStep(1, TURN, ALICE))
    shown = provider.handle_tool_call("tea_recall", {"n": 1}, context)
    hidden = provider.handle_tool_call("tea_forget", {}, context)
    broken = provider.handle_tool_call("tea_recall", {"break": 1}, context)
    provider.shutdown()

    assert shown == {"tool": "tea_recall", "of": "coach@alice"}
    assert hidden == {"error": "'tea_forget' is hidden, or no tool: `tool_names` does not name it"}
    assert "a bug" in broken["error"]


@pytest.mark.parametrize("wrong", [0, -1, "soon", True, 1e9])
def test_a_compression_timeout_is_seconds(wrong, tmp_path):
    """What is no time that a lease can be held is refused before anything is made."""
    config = ProviderConfig(name="n", home=tmp_path, options={"compress_timeout": wrong})
    with pytest.raises(ConfigError, match="compress_timeout"):
        kinds.create("registry:registry_example:Bare", config)


def test_each_person_has_an_instance_of_their_own(tmp_path):
    """Instances are bound to one agent and person, whatever the session (scopes stay apart)."""
    config = ProviderConfig(name="notes", home=tmp_path, options={"dir": "{home}/notes"})
    provider = kinds.create("registry:registry_example:Notes", config)
    provider.open()
    for n, scope in enumerate((ALICE, BOB)):
        feed(provider, steps(TURN, scope=scope, first=1 + n))
    provider.shutdown()

    files = sorted(path.name for path in (tmp_path / "notes").iterdir())
    assert files == ["coach@alice.md", "coach@bob.md"]


def test_the_instance_unused_longest_is_shut_down(opened, monkeypatch):
    """Instances are bounded; who comes again is started anew (G10)."""
    monkeypatch.setattr(hosting, "MAX_INSTANCES", 1)
    bare = example.Bare()
    provider = opened(bare)

    for n, scope in enumerate((ALICE, ALICE, BOB), 1):
        feed(provider, steps(TURN, scope=scope, first=n))

    assert bare.ended == 1


def test_two_in_one_instance_are_told_apart(opened):
    """Each of several is configured under its name, and named beside what it knows."""
    first, second = example.two()
    provider = opened(first, second, first={"key": 1})

    found = provider.prefetch("q", recall_context(ALICE))

    assert [(one.speaker, one.text) for one in found] == [
        ("first memory", "first knows."),
        ("second memory", "second knows."),
    ]
    assert (first.config, second.config) == ({"key": 1}, {})


@pytest.mark.parametrize("target", ["two_of_one_name", "Incomplete"])
def test_what_breaks_the_contract_is_refused_at_the_start(target, tmp_path):
    """A person has to act: the worker says so at once instead of parking every event."""
    config = ProviderConfig(name="notes", home=tmp_path)
    provider = kinds.create(f"registry:registry_example:{target}", config)

    with pytest.raises(ConfigError):
        provider.open()


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("a bug"), Permanent), (ConnectionError("down"), Transient)]
)
def test_errors_are_classified(error, kind, opened):
    """A bug parks the key, an outage is tried again (G6)."""
    provider = opened(example.Failing(error=error))

    with pytest.raises(kind):
        feed(provider, steps(TURN, scope=ALICE))


def test_session_keys_are_distinct_and_safe():
    """No two owners share a key, whatever characters their ids are made of."""
    keys = [session_key(Owner(a, b, "")) for a in HOSTILE_IDS for b in HOSTILE_IDS]
    keys += [session_key(Owner("a", b, c)) for b in HOSTILE_IDS for c in HOSTILE_IDS]
    keys += [session_key(Owner("a_b", "c", "")), session_key(Owner("a", "b_c", ""))]

    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if "/" in key or "\x00" in key]


def test_a_message_without_content_is_empty():
    """A tool call has no text; the contract wants one."""
    assert plain_message({"role": "assistant", "content": None}) == {
        "role": "assistant",
        "content": "",
    }
