"""What the real Hermes is given for a prompt: what answers it, and no earlier question instead."""

import pytest
from helpers.hermes.hermes_agent import Hermes
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

TOLD = {
    "My sister Paula moved to Bergen last spring.": "I will remember Paula and Bergen.",
    "Paula works as a nurse at the harbour clinic.": "A nurse, noted.",
    "The spare key of the cabin hangs behind the barometer.": "Behind the barometer, good.",
}
ASKED = (
    "Where does my sister Paula live?",
    "Do you still know where my sister lives?",
    "What does my sister do for work?",
    "In which city is Paula these days?",
    "Where is the spare key of the cabin?",
    "Where does the cabin's spare key hang?",
)
ANSWERS = {
    "Where does Paula live now?": "Bergen",
    "What is my sister's job?": "nurse",
    "Where do I find the spare key for the cabin?": "barometer",
}


def recalled(world: World, hermes: Hermes, prompt: str) -> list[str]:
    """Return the lines of the fence that a prompt gets as the first one of its session."""
    hermes.slash("/new")
    hermes.chat(prompt)
    sent = next(r for r in reversed(world.model.requests) if prompt in r.users[-1])
    fence = sent.users[-1].partition("<memory-context>")[2]
    return [line for line in fence.splitlines() if line.startswith("- ")]


def test_earlier_questions_do_not_come_back(hermes_world):
    """Questions that were asked often fill no block: the facts that answer them do."""
    world = hermes_world
    hermes = world.hermes()
    for text, answer in TOLD.items():
        world.model.script(text, answer)
        hermes.chat(text)
    for text in ASKED:
        world.model.script(text, "You told me that before.")
        hermes.slash("/new")
        hermes.chat(text)
    hermes.do("settle")
    with MemoryBus.connect(world.settings) as bus:
        wait_until(lambda: not bus.unsent, "all is sent", 60)
    for prompt, answer in ANSWERS.items():
        lines = wait_until(
            lambda prompt=prompt: recalled(world, hermes, prompt), "something is recalled", 60
        )
        assert any(answer in line for line in lines), (prompt, lines)
        assert not [line for line in lines if line.rstrip().endswith("?")], (prompt, lines)
