"""A provider of the two-method contract works behind the bus, as far as its contract reaches."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from helpers.processes.stalls import STANDSTILL
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
    UnknownSetting,
)
from memorybus.events import MemoryWritten, Scope, SessionRef
from memorybus_providers import registry
from memorybus_providers.adapters.ethos import MemoryUpdate, answer_of, updates_of
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallScope
from memorybus_providers.contract import ProviderContract
from memorybus_providers.contract.samples import SampleStep, feed, recall_context, steps

ALICE = Scope(agent="coach", user="alice")
ALICE_ELSEWHERE = Scope(agent="coder", user="alice")
BOB = Scope(agent="coach", user="bob")


Opened = Callable[..., MemoryProvider]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Return what opens a provider of tests/contract/ethos_example.py; shut down at the end."""
    with ExitStack() as closing:

        def opened(target: str = "MarkdownNotes", **options: Any) -> MemoryProvider:
            where = {"MarkdownNotes": {"dir": "{home}/notes"}, "Rows": {"file": "{home}/rows"}}
            options = {**where.get(target, {}), **options}
            config = ProviderConfig(name="notes", home=tmp_path, options=options)
            provider = registry.create(f"ethos:ethos_example:{target}", config)
            provider.open()
            closing.callback(provider.shutdown)
            return provider

        yield opened


def add(text: str, store: Any = "memory") -> MemoryWritten:
    """Return a write that adds a text."""
    return MemoryWritten(action="add", store=store, content=text)


def recalled(provider: MemoryProvider, scope: Scope | RecallScope, query: str = "") -> list[str]:
    """Return the texts of a recall."""
    return [found.text for found in provider.prefetch(query, recall_context(scope))]


class TestCoroutines(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        config = ProviderConfig(name="notes", home=tmp_path, options={"dir": "{home}/notes"})
        return registry.create("ethos:ethos_example:MarkdownNotes", config)


class TestRows(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        config = ProviderConfig(name="rows", home=tmp_path, options={"file": "{home}/rows"})
        return registry.create("ethos:ethos_example:Rows", config)


def takes_two(path: str, *, size: int = 3) -> None:
    """Stand for a class with two keywords."""


def takes_any(**more: Any) -> None:
    """Stand for a class that takes any keyword."""


def test_options_are_the_keywords_of_the_hosted_class(tmp_path):
    """A keyword that the class has not, or lacks, is told before anything is made."""

    def create(name: str, **options: Any) -> MemoryProvider:
        config = ProviderConfig(name="notes", home=tmp_path, options=options)
        return registry.create(f"ethos:{__name__}:{name}", config)

    with pytest.raises(UnknownSetting, match="'sizze'; did you mean 'size'"):
        create("takes_two", path="x", sizze=4)
    with pytest.raises(ConfigError, match="'path' is required"):
        create("takes_two")
    assert create("takes_any", anything=1).get_config_schema() is None


def said_in(session: str, event: MemoryWritten, scope: Scope, n: int) -> SampleStep:
    """Return a write of a session that is the first of its lineage."""
    return SampleStep(n, event, scope, SessionRef(session, session))


def test_memory_is_kept_by_a_chat_that_outlives_its_sessions(opened):
    """A provider that keeps a row for each key and store knows the next session what this one said.

    Its notes are one agent's of one person in one workspace, and go by no session's id.
    """
    provider = opened("Rows")
    notes = [add("Likes green tea."), add("Lives in Oslo."), add("Has a cat.")]
    feed(provider, [said_in("monday", note, ALICE, n) for n, note in enumerate(notes, 1)])
    replace = MemoryWritten(action="replace", content="Likes black tea.", old_text="green")
    remove = MemoryWritten(action="remove", old_text="Oslo")
    feed(provider, [said_in("tuesday", replace, ALICE, 4), said_in("tuesday", remove, ALICE, 5)])

    assert recalled(opened("Rows"), ALICE) == ["Likes black tea.", "Has a cat."]
    boat = Scope(agent="coach", user="alice", workspace="boat")
    assert [recalled(provider, other) for other in (BOB, ALICE_ELSEWHERE, boat)] == [[], [], []]


def test_the_user_store_is_the_persons_under_every_agent_and_workspace(opened):
    """`user` goes by `user_id`, whatever the chat is; no other person sees it."""
    provider = opened("Rows")
    feed(provider, [said_in("monday", add("Likes tea.", "user"), ALICE, 1)])

    boat = Scope(agent="coder", user="alice", workspace="boat", platform="cli")
    assert [recalled(provider, one) for one in (ALICE, boat)] == [["Likes tea."]] * 2
    assert recalled(provider, BOB) == []


def test_reading_and_writing_name_the_same_chat(opened):
    """The key is one for every session, platform and hook, and another for everybody else."""
    calls: list[Any] = []
    provider = opened(calls=calls)
    somewhere = Scope(agent="coach", user="alice", platform="telegram")
    feed(provider, [said_in("monday", add("x"), ALICE, 1), said_in("may", add("x"), somewhere, 2)])
    feed(provider, [said_in("monday", add("x"), BOB, 3)])

    first, again, bobs = (context for context, _ in calls)
    assert (first.session_key, again.session_key) == ("coach@alice", "coach@alice")
    assert bobs.session_key == "coach@bob"
    assert {context.memory_scope for context, _ in calls} == {"per-personality"}


def test_a_prefetch_is_told_the_query_and_its_answer_is_passed_on(opened):
    """What was found by meaning is not judged by words; source and cut are told with it."""
    provider = opened("ByMeaning")

    found = provider.prefetch("Which beverage?", recall_context(ALICE))

    assert provider._hosted.asked == ["Which beverage?"]
    assert [one.text for one in found] == ["Drinks sencha.", "Has a kettle."]
    assert {(one.source, one.truncated) for one in found} == {("vector", True)}


@pytest.mark.parametrize("target", ["FiveMethods", "UnnamedArguments", "HalfOfIt"])
def test_a_class_of_another_contract_is_refused_by_name(target):
    """Its methods are looked at before it gets an event: nothing becomes a dead letter (G6)."""
    with pytest.raises(ConfigError, match=f"ethos_example:{target} (is of|has no)"):
        registry.load(f"ethos:ethos_example:{target}")


def test_what_a_function_makes_of_another_contract_is_refused_when_it_is_open(opened):
    """What a function makes shows when it is made; its lanes wait, and nothing is parked (G6)."""
    with pytest.raises(ConfigError, match=r"five methods and sync\(updates, ctx\)"):
        opened("made_later")


def test_the_user_store_never_splits_by_personality(opened):
    """What is known of a person is recalled under every agent; an agent's notes only under it."""
    provider = opened()
    feed(provider, steps(add("Likes tea.", "user"), add("Use short answers."), scope=ALICE))

    assert recalled(provider, ALICE) == ["Use short answers.", "Likes tea."]
    assert recalled(provider, ALICE_ELSEWHERE) == ["Likes tea."]
    assert recalled(provider, BOB) == ["Use short answers."]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (MemoryWritten(action="remove", old_text="green"), ["Lives in Oslo."]),
        (
            MemoryWritten(action="replace", content="Likes coffee.", old_text="green"),
            ["Likes coffee.", "Lives in Oslo."],
        ),
    ],
    ids=["remove", "replace"],
)
def test_a_change_means_one_entry_not_the_store(change, left, opened):
    """It goes by substring: the contract's `replace` would take the whole store."""
    provider = opened()
    feed(provider, steps(add("Likes green tea."), add("Lives in Oslo."), scope=ALICE))

    feed(provider, steps(change, scope=ALICE, first=3))

    assert recalled(provider, ALICE) == left


def test_nothing_remembered_is_nothing_recalled(opened):
    """A prefetch that returns None recalls nothing, and is no error."""
    assert recalled(opened(), ALICE, "anything?") == []


@pytest.mark.parametrize(
    "event",
    [add(" "), MemoryWritten(action="remove", old_text=" "), MemoryWritten(action="replace")],
)
def test_an_empty_list_of_updates_is_not_sent(event, opened, tmp_path):
    """A write that changes nothing makes no call, and no file."""
    calls: list[Any] = []
    provider = opened(calls=calls)

    feed(provider, steps(event, scope=ALICE))

    assert (calls, (tmp_path / "notes").exists()) == ([], False)


def test_the_context_names_whose_memory_is_meant(opened):
    """The provider gets person, personality, session and platform; ids are safe as file names."""
    calls: list[Any] = []
    provider = opened(calls=calls)

    feed(provider, steps(add("x"), scope=Scope(agent="coach", user="../Root", platform="cli")))

    ((context, updates),) = calls
    assert (context.personality_id, context.session_id) == ("coach", "contract-session")
    assert (context.platform, context.working_dir) == ("cli", None)
    assert context.user_id.startswith("root~")
    assert updates == [MemoryUpdate("memory", "add", "x")]


def test_everyones_memories_are_those_of_all_it_was_written_for(opened):
    """An operator's recall finds every owner's memories, also on another instance."""
    provider = opened()
    feed(provider, steps(add("Likes tea.", "user"), scope=ALICE))
    feed(provider, steps(add("Likes rum.", "user"), scope=BOB, first=2))

    other = opened()

    assert set(recalled(other, RecallScope(None, None, None))) == {"Likes tea.", "Likes rum."}
    assert recalled(other, RecallScope("coach", None, None), "Who likes rum?")[0] == "Likes rum."


def test_plain_methods_and_mappings_will_do(opened):
    """Neither coroutines nor a class for the answer are asked for."""
    provider = opened("PlainMethods")
    feed(provider, steps(add("Likes tea.", "user"), scope=ALICE))

    assert recalled(provider, ALICE, "What tea?") == ["Likes tea."]


class HttpError(Exception):
    """As HTTP libraries have it."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code


class ReadTimeout(Exception):
    """As HTTP libraries have it, which is no OSError."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no such store"), Permanent),
        (HttpError(422), Permanent),
        (HttpError(503), Transient),
        (HttpError(429), Transient),
        (ReadTimeout(), Transient),
        (ConnectionResetError(), Transient),
        (ConnectionRefusedError(), Unavailable),
        (Unavailable("says so itself"), Unavailable),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_its_errors_are_classified(error, kind, opened):
    """What may pass is tried again, a bug or a refusal parks the key (G6)."""
    provider = opened("Failing", error=error)

    with pytest.raises(ProviderError) as write:
        feed(provider, steps(add("x"), scope=ALICE))
    with pytest.raises(ProviderError) as recall:
        recalled(provider, ALICE)

    assert (type(write.value), type(recall.value)) == (kind, kind)


def test_a_coroutine_that_does_not_end_is_given_up(opened):
    """After the deadline a coroutine is cancelled and counts as a time-out."""
    provider = opened("Endless")

    with pytest.raises(Transient):
        provider.prefetch("q", recall_context(ALICE, deadline=0.05))


def test_an_answer_that_is_no_context_is_refused():
    """A prefetch that returns anything else is an error, not an empty recall."""
    with pytest.raises(Permanent):
        answer_of(["Likes tea."])


def test_a_scheme_without_its_module_names_the_remedy():
    """What cannot be imported is said at the start, by its own name."""
    with pytest.raises(MissingProvider, match="no_such_module"):
        registry.load("ethos:no_such_module:Notes")


@pytest.mark.parametrize(
    ("event", "actions"),
    [
        (add("a"), ["add"]),
        (MemoryWritten(action="replace", content="b", old_text="a"), ["remove", "add"]),
        (MemoryWritten(action="replace", content="b"), ["add"]),
        (MemoryWritten(action="remove", old_text="a"), ["remove"]),
    ],
    ids=["add", "replace", "replace nothing", "remove"],
)
def test_a_write_as_updates(event, actions):
    """Every write of the bus has its updates, in an order that keeps the rest of the store."""
    assert isinstance(event, MemoryWritten)
    assert [update.action for update in updates_of(event)] == actions
