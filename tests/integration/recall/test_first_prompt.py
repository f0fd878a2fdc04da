"""The first prompt after `memorybus up`: nobody waits for a process that starts first."""

import sys
from pathlib import Path

import pytest
from helpers.processes.processes import Child, Spawn
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

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
