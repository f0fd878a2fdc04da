"""Prompts as people write them to agents, after ten weeks of turns with one assistant."""

from collections.abc import Mapping

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.assistant_memory import PROMPTS, publish
from helpers.stories.scenario import wait_applied, worker
from memorybus.agent.client import MemoryBus

LEAST_FIRST = 30
LEAST_PRESENT = 32
"""Of 33 prompts with an answer; "allergisch" does not find "Nussallergie" by words alone."""


@pytest.fixture
def options(request: pytest.FixtureRequest) -> Mapping[str, object]:
    """Return the options of the store that a test is for."""
    if request.param == "postgres":
        return {"url": request.getfixturevalue("postgres_url")}
    return {}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("store", "options"),
    [("holographic", "holographic"), ("postgres", "postgres")],
    indirect=["options"],
)
def test_a_prompt_gets_the_memory_that_answers_it(
    store, options, redis_client, redis_url, make_settings, spawn
):
    """The right memory comes first or is there, and a prompt without one gets no block."""
    settings = make_settings(
        url=redis_url,
        providers=(store,),
        provider={store: {**options, "embedder": "none"}},
        prefetch_wait=30.0,
    )
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        publish(bus)
        assert bus.flush("logged", 30)
        wait_applied(redis_client, settings, store)
        session = bus.session("asking", warm=False)
        wait_until(lambda: "7719" in session.prefetch("garage code"), "prompts are answered", 60)
        blocks = {prompt: session.prefetch(prompt.text) for prompt in PROMPTS}
    answered = {prompt: block for prompt, block in blocks.items() if prompt.right}
    missed = [prompt.text for prompt, block in answered.items() if prompt.right not in block]
    later = [prompt.text for prompt, block in answered.items() if prompt.right not in best(block)]
    assert len(answered) - len(missed) >= LEAST_PRESENT, missed
    assert len(answered) - len(later) >= LEAST_FIRST, later
    assert [block for prompt, block in blocks.items() if not prompt.right] == ["", "", ""]


def best(block: str) -> str:
    """Return the first memory of a block."""
    return next((line for line in block.splitlines() if line.startswith("- ")), "")
