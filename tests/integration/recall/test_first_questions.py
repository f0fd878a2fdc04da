"""First questions: a greeting, and "what do you know about me?", through a real worker."""

from collections.abc import Iterator

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus_console.operations.memories import amending
from memorybus_console.operations.memories.amending import MemoryAction

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
