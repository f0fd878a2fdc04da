"""First prompts: after `memorybus up`, before a connection, a greeting, and "who am I?"."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Child, Spawn
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.stories.scenario import environ, worker
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus_console.operations.memories import amending
from memorybus_console.operations.memories.amending import MemoryAction

COMMAND = Path(sys.executable).with_name("memorybus")
FACT = "My sister Nora plays the cello in Graz."
PROMPT = "Which instrument does Nora play?"
PROVIDERS = ("builtin", "holographic")

LONGEST = 0.5
"""Seconds from the prompt to its block; a recall process would take longer to start."""


def up(spawn: Spawn, settings: Settings) -> Child:
    """Start `memorybus up` as a user does, and wait until it is ready."""
    child = spawn(COMMAND, "up", "--json", env=environ(settings))
    child.wait_output('"ready"')
    return child


@pytest.mark.timeout(240)
def test_the_first_prompt_after_up_is_answered_within_half_a_second(make_settings, spawn, witness):
    """G9: the first prompt gets its memories at once, from a worker that was never asked."""
    settings = make_settings(url="", providers=PROVIDERS, prefetch_wait=30.0)
    before = up(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("before", warm=False)
        session.turn_completed(FACT, "How lovely.", ordinal=0)
        wait_until(lambda: FACT in session.prefetch(PROMPT), "the turn is remembered", 60)
    assert before.terminate() == 0, before.output()
    running = up(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("after", warm=False)
        assert bus.flush(timeout=30)  # connected, as an agent is before a person has written
        block, took = witness.timed(lambda: session.prefetch(PROMPT))
    assert FACT in block
    assert took < LONGEST + MARGIN
    assert running.terminate() == 0, running.output()


def test_a_healthy_start_counts_no_failure(settings, monkeypatch):
    """G9: a prefetch before the first connection is made is no failure."""
    monkeypatch.setattr("memorybus.outbox.flusher.Flusher._connect", lambda self: 1 / 0)
    monkeypatch.setattr("memorybus.outbox.flusher.Flusher._back_off", lambda self, error: None)
    with MemoryBus.connect(settings) as bus:
        assert bus.session("s", warm=False).prefetch("what was it") == ""
        assert bus.counters.prefetch_failures == 0
        assert bus.counters.prefetch_failed == {}


def test_a_redis_that_is_away_counts(make_settings):
    """G9: a prefetch while Redis is known to be away is counted."""
    settings = make_settings(url=f"redis://127.0.0.1:{free_ports(1)[0]}")
    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: bus.problem, "Redis is known to be away")
        session = bus.session("s", warm=False)
        session.prefetch("what was it")
        session.prefetch("what was it then")
        assert bus.counters.prefetch_failures == bus.counters.prefetch_failed["redis"] == 2


RULE = "Never push to main."


@pytest.fixture
def bus(redis_url: str, make_settings: MakeSettings, spawn: Spawn) -> Iterator[MemoryBus]:
    """Return a bus whose person has said something in an earlier session."""
    settings = make_settings(url=redis_url, providers=("holographic",), prefetch_wait=30.0)
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        earlier = bus.session("earlier", warm=False)
        earlier.turn_completed(f"Hello. {RULE}", "Noted.", ordinal=0)
        earlier.turn_completed("My sister Nora plays the cello.", "How lovely.", ordinal=1)
        earlier.turn_completed("Where is Graz?", "In Styria.", ordinal=2)
        wait_until(lambda: "Styria" in fresh_answer(bus), "the turns are remembered", 60)
        yield bus
    assert child.alive, child.output()


def fresh_answer(bus: MemoryBus) -> str:
    """Return what a new session gets for a prompt."""
    return bus.session(warm=False).prefetch("Graz")


def is_profile(block: str) -> bool:
    """Return whether a block tells the instruction and what was said, and no question."""
    known = f"standing instruction] {RULE}" in block and "My sister Nora" in block
    return known and "Where is Graz?" not in block and "Hello" not in block


@pytest.mark.timeout(240)
def test_first_questions_get_what_is_known(bus):
    """A first greeting, and a question for all that is known, get the profile; "ok" does not."""
    greeted = bus.session("greeted", warm=False)
    assert is_profile(greeted.prefetch("hello!"))
    assert greeted.prefetch("hello!") == ""
    assert is_profile(greeted.prefetch("What do you remember about me?"))
    assert is_profile(bus.session("asked", warm=False).prefetch("who am I"))
    assert bus.session("agreed", warm=False).prefetch("ok") == ""
    branch = greeted.branch("twig")
    assert branch.prefetch("good morning") == ""
    assert is_profile(greeted.switched_to("fresh", reset=True).prefetch("good morning"))
    prompted = bus.session("prompted")
    wait_until(lambda: is_profile(prompted.system_prompt()), "its prompt is ready, and kept", 60)


@pytest.mark.timeout(240)
def test_an_instruction_is_edited_as_other_memories(bus):
    """An operator corrects or deletes an instruction by its event, and prompts follow."""

    def amend(action: MemoryAction, content: str = "") -> None:
        page = amending.list_memories(bus.settings, "holographic", owner, containing=RULE)
        event = next(one.event for one in page.memories if one.text == RULE)
        memory = amending.find_memory(
            bus.settings, "holographic", owner, event, amending.text_digest(RULE)
        )
        plan = amending.plan_amendment(bus.settings, action, memory, content)
        assert not amending.carry_out(bus.settings, plan, wait=60.0).behind

    def asked() -> str:
        return session.prefetch("What do you know about me?")

    session: Session = bus.session("asking", warm=False)
    scope = session.scope
    owner = amending.RecallRequest(
        query="", agent=scope.agent, user=scope.user, workspace=scope.workspace
    )
    amend("correct", "Push to main only after a review.")
    wait_until(lambda: "after a review" in asked(), "the correction is shown", 60)
    assert RULE not in asked()
    amend("delete")
    wait_until(lambda: "My sister Nora" in asked() and RULE not in asked(), "it is gone", 60)
