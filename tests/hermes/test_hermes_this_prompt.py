"""The real Hermes: what stands in the fence of a prompt answers that prompt, not the one before."""

from collections.abc import Iterator

import pytest
from helpers.hermes.hermes_agent import Hermes
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.events import TurnCompleted

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

THINGS = (
    "kettle", "ladder", "compass", "lantern", "anchor", "saddle", "violin", "helmet", "mortar",
    "shovel", "blanket", "telescope", "hammock", "barrel", "candle", "chisel", "trumpet", "basket",
    "mirror", "hatchet",
)  # fmt: skip
PLACES = (
    "attic", "cellar", "boathouse", "pantry", "stable", "chapel", "greenhouse", "workshop",
    "library", "garage", "laundry", "orchard", "balcony", "kitchen", "vestry", "tower", "meadow",
    "corridor", "harbour", "bakery",
)  # fmt: skip
FACTS = {
    thing: f"The {thing} lies in the {place}." for thing, place in zip(THINGS, PLACES, strict=True)
}
ASKED = THINGS[::3]
"""The prompts change the topic each time."""


@pytest.fixture(scope="module", name="hermes")
def _hermes(hermes_world: World) -> Iterator[Hermes]:
    """Return a Hermes whose person has told all facts in another session, long applied."""
    hermes = hermes_world.hermes()
    hermes.chat("good morning")
    hermes_world.wait_turns(hermes.session, "good morning")
    [turn, *_] = hermes_world.events(TurnCompleted, hermes.session)
    with MemoryBus.connect(hermes_world.settings) as bus:
        told = bus.session(
            "told-before",
            agent=turn.scope.agent,
            user=turn.scope.user,
            workspace=turn.scope.workspace,
            warm=False,
        )
        for fact in FACTS.values():
            told.turn_completed(fact, "I see.")
        assert bus.flush(timeout=30)
        wait_until(
            lambda: all(
                fact in told.prefetch(f"Where is the {thing}?", wait=5.0)
                for thing, fact in FACTS.items()
            ),
            "all that was told is recalled",
            60,
        )
    hermes.slash("/new")
    yield hermes
    hermes.do("settle")


def test_each_prompt_is_given_what_answers_it(hermes_world, hermes):
    """Topics change with each prompt, and the fence of each holds the fact that answers it."""
    answered = []
    for thing in ASKED:
        prompt = f"Where did I put the {thing}?"
        hermes.chat(prompt)
        request = hermes_world.model.asked(prompt)
        answered.append(FACTS[thing] in request.users[-1].partition("<memory-context>")[2])
    assert all(answered), dict(zip(ASKED, answered, strict=True))


def test_assent_is_given_nothing(hermes_world, hermes):
    """A prompt that asks nothing carries no memories of the topic before."""
    hermes.chat("ok, thanks")
    request = hermes_world.model.asked("ok, thanks")
    assert "<memory-context>" not in request.users[-1]
