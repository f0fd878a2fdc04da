"""The real Hermes at its prompt: turns, the memory tool, and every way from session to session.

One process of Hermes serves all tests of this module, as one serves a day's conversations; each
test begins with ``/new``.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from helpers.hermes.hermes_agent import LONG_WORDS, Hermes
from helpers.hermes.hermes_model import calls, keeps
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.text.fence import CLOSE, OPEN

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]


@pytest.fixture(scope="module", name="world")
def _world(hermes_world: World) -> World:
    return hermes_world


INLINE = ("on_turn_start", "on_memory_write", "on_session_switch", "on_delegation", "sync_turn")
SLOW = 250.0
"""Milliseconds no hook takes unless it waits; `bench/hermes/run.py` has the figures."""


@pytest.fixture(scope="module", name="prompt")
def _prompt(world: World) -> Hermes:
    return world.hermes(toolsets=["memory", "delegation"])


@pytest.fixture(name="hermes")
def _hermes(prompt: Hermes) -> Iterator[Hermes]:
    """Return the prompt, in a session in which nothing was said yet."""
    if not prompt.session:
        prompt.chat("good morning")
    prompt.slash("/new")
    yield prompt
    prompt.do("settle")


def test_turns_are_in_the_log_under_their_session(world, hermes):
    """G1: each turn is logged once, in order, numbered, under Hermes's own session id."""
    said = ["where is the harbour", "and the lighthouse", "thank you for that"]
    for text in said:
        hermes.chat(text)
    world.wait_turns(hermes.session, *said)
    found = world.events(TurnCompleted, hermes.session)
    assert [e.event.ordinal for e in found] == [0, 1, 2]
    assert [e.event.assistant for e in found] == [f"I have heard: {text}" for text in said]
    assert {e.scope.platform for e in found} == {"cli"}
    assert {e.session.root for e in found} == {hermes.session}
    assert len(world.events(SessionStarted, hermes.session)) <= 1


def test_a_turn_carries_its_own_messages_without_fences(world, hermes):
    """A turn's messages are its own, and nothing that memory injected is remembered again."""
    world.model.script(
        "keep the kettle",
        keeps("kettle is copper"),
        "kept",
    )
    hermes.chat("the first words")
    hermes.chat("please keep the kettle")
    [_, turn] = world.wait_events(TurnCompleted, hermes.session, 2)
    messages = turn.event.messages
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[0]["content"] == "please keep the kettle"
    raw = repr(turn.event)
    assert "memory-context" not in raw
    assert "api_content" not in raw
    assert "_db_persisted" not in raw


def test_a_single_memory_write_is_an_event(world, hermes):
    """The memory tool's write is logged once, with the session and call it came from."""
    world.model.script(
        "tea not coffee",
        keeps("drinks tea", "user", name="tea"),
        "noted",
    )
    hermes.chat("I drink tea not coffee")
    [write] = world.wait_events(MemoryWritten, hermes.session)
    assert (write.event.action, write.event.store) == ("add", "user")
    assert write.event.content == "drinks tea"
    assert write.event.provenance["tool_call_id"].startswith("tea_0_")
    hermes.chat("and so on")  # the memory file changed: it must not be told twice
    world.wait_turns(hermes.session, "I drink tea not coffee", "and so on")
    assert len(world.events(MemoryWritten, hermes.session)) == 1


def test_a_batch_of_memory_writes_is_an_event_each(world, hermes):
    """One tool call with several operations: one event each, in their order, none lost (G2)."""
    gate = "the gate code is 4711"
    operations = [
        {"action": "add", "content": gate},
        {"action": "add", "content": "the cellar is damp"},
        {"action": world.change, "old_text": gate, "content": "the gate code is 4712"},
        {"action": "remove", "old_text": "cellar is damp"},
    ]
    world.model.script(
        "several things",
        calls(("memory", {"target": "memory", "operations": operations}), name="batch"),
        "all noted",
    )
    hermes.chat("remember several things")
    writes = world.wait_events(MemoryWritten, hermes.session, 4)
    assert [w.event.action for w in writes] == ["add", "add", "replace", "remove"]
    assert [w.event.content for w in writes][:3] == [
        "the gate code is 4711",
        "the cellar is damp",
        "the gate code is 4712",
    ]
    assert len({w.id for w in writes}) == 4


def test_a_delegation_is_logged_with_its_child(world, hermes):
    """What a subagent did is one event of the parent; the child itself writes nothing."""
    world.model.script(
        "delegate the sum",
        calls(("delegate_task", {"goal": "add two and two", "context": "arithmetic"})),
        "delegated",
    )
    hermes.chat("please delegate the sum")
    [delegated] = world.wait_events(Delegated, hermes.session)
    assert "add two and two" in delegated.event.task
    assert delegated.event.model == "scripted"
    assert (delegated.event.tokens_in, delegated.event.tokens_out) == (100, 10)
    assert delegated.event.tool_count == 0
    assert delegated.event.child_session
    assert "add two and two" not in " ".join(world.turns())
    assert not world.events(session=delegated.event.child_session)


def test_new_with_a_busy_worker_mixes_nothing(world, hermes):
    """The end and the switch of a ``/new`` come late: nothing of either session is in the other."""
    hermes.chat("the parrot is called Ferdinand")
    old = hermes.session
    world.wait_turns(old, "the parrot is called Ferdinand")
    world.model.script(
        "fresh start",
        keeps("a fresh start"),
        "started",
    )
    hermes.do("busy")
    hermes.slash("/new")
    new = hermes.session
    assert new != old
    hermes.chat("what a fresh start")
    hermes.do("free")
    hermes.do("settle")
    world.wait_turns(new, "what a fresh start")
    world.wait_events(MemoryWritten, new)
    world.wait_events(SessionEnded, old)
    assert world.turns(old) == ["the parrot is called Ferdinand"]
    wire = world.model.asked("what a fresh start").users
    assert "Ferdinand" not in " ".join(wire)
    roots = {e.session.root for e in world.events(session=new)}
    assert roots == {new}
    [switch] = world.wait_events(SessionSwitched, new)
    assert (switch.event.parent, switch.event.reset, switch.session.epoch) == (old, True, 0)
    assert len(world.events(SessionStarted, new)) == 1
    hooks = world.home.hooks("on_turn_start", "on_session_switch")
    order = [h.hook for h in hooks if "fresh start" in h.args or new in h.args]
    assert order == ["on_turn_start", "on_session_switch"], "the race did not happen"


def test_a_branch_keeps_its_root(world, hermes):
    """``/branch``: another session, whose parent and root are those it was made from."""
    hermes.chat("the trunk of the tree")
    old = hermes.session
    hermes.slash("/branch another way")
    new = hermes.session
    hermes.chat("a twig of the tree")
    world.wait_turns(new, "a twig of the tree")
    [begun] = world.wait_events(SessionStarted, new)
    assert (begun.event.reason, begun.session.root, begun.session.parent) == ("branch", old, old)
    assert world.turns(old) == ["the trunk of the tree"]
    [turn] = world.events(TurnCompleted, new)
    assert (turn.session.root, turn.event.ordinal) == (old, 1)


def test_a_resume_goes_on_where_the_session_was(world, hermes):
    """``/resume``: later turns are the old session's, numbered on."""
    hermes.chat("first of the old one")
    old = hermes.session
    hermes.slash("/new")
    hermes.chat("something in between")
    between = hermes.session
    hermes.slash(f"/resume {old}")
    assert hermes.session == old
    hermes.chat("second of the old one")
    world.wait_turns(old, "first of the old one", "second of the old one")
    world.wait_turns(between, "something in between")
    found = world.events(TurnCompleted, old)
    assert [e.session.root for e in found] == [old, old]
    assert found[-1].event.ordinal == 1


def test_an_undone_turn_may_be_said_again(world, hermes):
    """``/undo``: the same words after it are another event, in another epoch (G2)."""
    hermes.chat("a turn that stays")
    hermes.chat("a turn to be undone")
    hermes.slash("/undo")
    hermes.chat("a turn to be undone")
    said = ["a turn that stays", "a turn to be undone", "a turn to be undone"]
    world.wait_turns(hermes.session, *said)
    found = world.events(TurnCompleted, hermes.session)
    assert [e.event.ordinal for e in found] == [0, 1, 1]
    assert [e.session.epoch for e in found] == [0, 0, 1]
    [switch] = world.events(SessionSwitched, hermes.session)[-1:]
    assert switch.event.rewound
    assert switch.event.retracted == (found[1].id,)


def test_as_many_turns_are_retracted_as_were_undone(world, hermes):
    """``/undo 2``: the rewind names the turns that state.db has as taken back, and no other."""
    said = ["the one that stays", "the first to go", "the second to go"]
    for text in said:
        hermes.chat(text)
    world.wait_turns(hermes.session, *said)
    hermes.slash("/undo 2")
    hermes.do("settle")

    def retracted() -> list[tuple[str, ...]]:
        switches = world.events(SessionSwitched, hermes.session)
        return [one.event.retracted for one in switches if one.event.retracted]

    found = world.events(TurnCompleted, hermes.session)
    taken = wait_until(retracted, "the rewind is in the log", 60)
    assert taken == [tuple(turn.id for turn in found[1:])]


def test_an_undone_turn_is_injected_nowhere(world, hermes):
    """G8, G9: what was undone is recalled by no later session, though it was before the undo."""
    hermes.chat("my bank is the one at the quay")
    hermes.chat("my bank PIN is 8342")
    [turn, _] = world.wait_events(TurnCompleted, hermes.session, 2)
    with MemoryBus.connect(world.settings) as bus:

        def recalled() -> str:
            scope = turn.scope
            scope_names = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
            return bus.recall("what is my bank PIN", **scope_names).text

        wait_until(lambda: "8342" in recalled(), "it is recalled", 60)
        hermes.slash("/undo")
        wait_until(lambda: "8342" not in recalled(), "it is forgotten", 60)
        assert "at the quay" in recalled()
    hermes.slash("/new")
    for number in range(2):
        hermes.chat(f"what is my bank PIN {number}")
        hermes.do("settle")
    wire = world.model.asked("what is my bank PIN 1").users
    assert "8342" not in " ".join(wire)


def test_compression_in_place_is_no_end(world, hermes):
    """In place, the id stays: an epoch more, all messages logged before, and no end of session."""
    said = [f"long story part {number} {LONG_WORDS}".strip() for number in range(12)]
    for text in said:
        hermes.chat(text)
    id_before = hermes.session
    hermes.slash("/compress")
    assert hermes.session == id_before
    hermes.chat("after the compression")
    world.wait_turns(hermes.session, *said, "after the compression")
    [compressing, *_] = world.wait_events(ContextCompressing, hermes.session)
    told = repr(compressing.event.messages)
    assert all(text in told for text in said[:3])
    assert "memory-context" not in told
    last = world.events(TurnCompleted, hermes.session)[-1]
    assert last.session.epoch == 1
    assert not world.events(SessionEnded, hermes.session)
    hermes.slash("/new")
    hermes.do("settle")
    assert len(world.wait_events(SessionEnded, id_before)) == 1


def test_another_agent_for_the_same_session_starts_nothing(world, hermes):
    """After a change of route Hermes initialises the session again: it goes on, numbered on."""
    hermes.chat("said to the first agent")
    hermes.do("forget_agent")
    hermes.chat("said to the second agent")
    world.wait_turns(hermes.session, "said to the first agent", "said to the second agent")
    found = world.events(TurnCompleted, hermes.session)
    assert [(e.event.ordinal, e.session.epoch) for e in found] == [(0, 0), (1, 0)]


def test_a_first_prompt_without_a_topic_gets_what_matters_most(world, hermes):
    """A session that opens with a greeting knows what was said in others, within a fence.

    Since 0.20.4 Hermes asks for no recall then: it comes with the system prompt.
    """
    hermes.chat("my boat is called Albatross")
    [turn] = world.wait_events(TurnCompleted, hermes.session)
    scope = turn.scope
    options = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
    with MemoryBus.connect(world.settings) as bus:
        wait_until(
            lambda: "Albatross" in bus.session(**options, warm=False).system_prompt(),
            "it is ready",
            60,
        )
    other = world.hermes()
    other.chat("hello!")
    request = world.model.asked("hello!")
    told = [request.system, request.users[-1]]
    assert any("Albatross" in text.partition("<memory-context>")[2] for text in told)


def test_what_the_window_holds_is_not_recalled_into_it(world, hermes):
    """Recall stays in every later request: a session's own turns do not come again beside them."""
    hermes.chat("the walrus wears a waistcoat")
    world.wait_turns(hermes.session, "the walrus wears a waistcoat")
    for number in range(3):
        hermes.chat(f"what does the walrus wear {number}")
        hermes.do("settle")
    fences = [text.partition("<memory-context>")[2] for text in world.model.requests[-1].users]
    assert not [fence for fence in fences if "walrus" in fence]


def test_a_live_turn_says_what_it_took(world, hermes):
    """Each turn has its own model and tokens, the sum of its calls: no later release could tell."""
    world.model.script(
        "keep the compass",
        keeps("compass is brass"),
        "kept",
    )
    for text in ("how far is the moon", "please keep the compass", "and the sun"):
        hermes.chat(text)
    found = world.wait_events(TurnCompleted, hermes.session, 3)
    took = [(e.event.model, e.event.tokens_in, e.event.tokens_out) for e in found]
    assert took == [("scripted", 100, 10), ("scripted", 200, 20), ("scripted", 100, 10)]


def test_what_providers_add_stays_in_the_system_prompt(world, hermes):
    """A session begins with what is ready for its person, and keeps it through a compression."""
    hermes.chat("who keeps the lighthouse")
    remember_elsewhere(world, hermes, "Runa keeps the lighthouse")
    hermes.slash("/new")
    said = [f"the lighthouse, part {number} {LONG_WORDS}".strip() for number in range(12)]
    for text in said:
        hermes.chat(text)
    first = fenced(world.model.asked(said[0]).system)
    assert "\nFrom builtin:\n" in first
    assert "\n  - Runa keeps the lighthouse\n" in first
    remember_elsewhere(world, hermes, "Olaf helps her")
    hermes.slash("/compress")
    hermes.chat("after the story")
    assert fenced(world.model.asked("after the story").system) == first
    hermes.slash("/new")
    hermes.chat("another story")
    assert "\n  - Olaf helps her\n" in fenced(world.model.asked("another story").system)


def test_a_system_prompt_is_the_new_session_s_before_its_switch(world, hermes):
    """The /new race: the switch waits behind a slow backend; the prompt is the new session's."""
    hermes.chat("who mends the nets")
    remember_elsewhere(world, hermes, "Sif mends the nets")
    hermes.do("busy")
    hermes.slash("/new")
    hermes.chat("a story of nets")
    hermes.do("free")
    assert "\n  - Sif mends the nets\n" in fenced(world.model.asked("a story of nets").system)


def remember_elsewhere(world: World, hermes: Hermes, text: str) -> None:
    """Let another host of the same agent write to its memory, and the workers be ready."""
    [turn, *_] = world.wait_events(TurnCompleted, hermes.session)
    options = {"agent": turn.scope.agent, "user": turn.scope.user, "warm": False}
    with MemoryBus.connect(world.settings) as bus:
        elsewhere = bus.session(**options)
        elsewhere.memory_written("add", text, store="user")
        elsewhere.queue_prefetch("who keeps it")
        new = partial(bus.session, **options)  # a session keeps the prompt that it was given
        wait_until(lambda: text in of_builtin(new().system_prompt()), "builtin is ready", 60)


def of_builtin(prompt: str) -> str:
    """Return what this provider adds; each has its part ready at its own time."""
    return prompt.partition("From builtin:")[2].partition("From ")[0]


def fenced(prompt: str) -> str:
    """Return the one block of memory in a system prompt."""
    assert (prompt.count(OPEN), prompt.count(CLOSE)) == (1, 1)
    return prompt.partition(OPEN)[2].partition(CLOSE)[0]


def test_the_system_prompt_is_the_same_from_turn_to_turn(world, hermes):
    """The provider's block is static, so that the model's prefix cache holds."""
    hermes.chat("prompt the first")
    hermes.chat("prompt the second")
    first = world.model.asked("prompt the first").system
    assert first == world.model.asked("prompt the second").system


def test_no_hook_waited(world, hermes):
    """G9: of all the hooks of this module, none that Hermes calls inline waited for anything."""
    hermes.chat("the last words")
    slow = [h for h in world.home.hooks(*INLINE) if h.own_ms > SLOW]
    assert not slow
    errors = [
        line for line in world.home.log().splitlines() if "memorybus" in line and "ERROR" in line
    ]
    assert not errors


def test_leaving_ends_the_session(world, prompt):
    """Leaving the prompt is the end of its session, with its turns before it (G3)."""
    prompt.slash("/new")
    prompt.chat("good night")
    prompt.leave()
    [end] = world.wait_events(SessionEnded, prompt.session)
    kinds = [type(e.event).__name__ for e in world.events(session=prompt.session)]
    assert kinds[-1] == "SessionEnded"
    assert kinds.count("TurnCompleted") == 1
    assert end.event.message_count >= 2
    wait_until(lambda: not prompt.alive, "Hermes is gone")
