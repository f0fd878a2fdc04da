"""What memory gave to prompts, as insights count it, by real workers."""

import msgspec
import pytest
from helpers.archive.sealed_log import QUICK
from helpers.stories.scenario import PATIENT
from memorybus.events import MemoryCurated
from memorybus.insights.reading import read_insights
from memorybus_workers.archiving.archiver import run_once

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_recalls_are_counted_with_their_turns(make_world, share):
    """Asked, fresh and nothing are counted, also from the archive and if no block is recorded."""
    world = make_world(
        providers=("holographic",), prefetch_wait=30.0, recorded_prompts=share,
        **{**PATIENT, **QUICK},
    )  # fmt: skip
    world.worker()
    with world.bus() as bus:
        facts = bus.session("facts", user="ann", warm=False)
        named = facts.turn_completed("The parrot is called Admiral.", "I see.").event_id
        assert bus.flush("logged", 10)
    world.wait_applied()
    with world.bus() as bus:
        session = bus.session("s", user="ann", warm=False)
        for ordinal, prompt in enumerate(
            ("What is the parrot called?", "Which zeppelin flew over Brno?", "ok")
        ):
            block = session.prefetch(prompt)
            assert ("Admiral" in block) == (ordinal == 0)
            session.turn_completed(prompt, "Let me see.", ordinal=ordinal)
        session.turn_completed("What is the parrot called?", "Let me see.", ordinal=0)  # again
        session.publish(MemoryCurated(memory="m", before="active", after="stale"))
        assert bus.flush("logged", 10)
    world.wait_applied()
    for _ in range(2):
        insights = read_insights(world.settings, days=1, user="ann", zone="UTC")
        [provider] = insights.recall.providers
        assert msgspec.structs.astuple(provider) == ("holographic", 2, 0, 2, 0, 1, 1)
        assert sum(day.asked for day in insights.recall.days) == 2
        assert sum(day.given for day in insights.recall.days) == 1
        assert [(used.event, used.times) for used in insights.recall.most_used] == [(named, 1)]
        assert insights.aged.stale == 1
        assert read_insights(world.settings, days=1, user="bob").recall.providers == []
        run_once(world.settings)
    assert world.result("status")["log"]["conflicts"] == 0
