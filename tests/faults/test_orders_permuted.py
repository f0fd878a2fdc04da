"""Row 12: switches, branches and late events come in every order (G3)."""

from collections.abc import Sequence
from itertools import permutations

import msgspec
import pytest
from helpers.faults.scale import chances, rounds
from helpers.processes.waiting import wait_until
from helpers.stories.stories import Story
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import Envelope, Scope
from memorybus.lineage.graph import Lineage, fold, identity_of
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis

ORDERS = 720


def renamed(envelope: Envelope, old: str, new: str) -> Envelope:
    """Return an event of a story under the names of another."""
    text = msgspec.json.encode(envelope).decode().replace(f'"{old}-', f'"{new}-')
    text = text.replace(f":{old}-", f":{new}-")
    return msgspec.json.decode(text, type=Envelope)


def assert_forest(lineage: Lineage) -> None:
    """Fail unless every session is met once on the way from the roots: no circle, none left out."""
    met = [node.identity for _, node in lineage.walk()]
    assert sorted(met) == sorted(lineage.nodes)


@pytest.mark.fault
@pytest.mark.parametrize("number", rounds(28))
def test_every_order_tells_the_same_lineage(report, number):
    """G3: 720 orders of one story, switches and late turns among them, fold to the same forest."""
    story = Story(chances("story", str(number)), "s")
    told = fold(story.envelopes)
    assert_forest(told)
    orders = list(permutations(story.envelopes))
    assert len(orders) == ORDERS
    assert all(fold(order).nodes == told.nodes for order in orders)
    report(faults=len(orders), sessions=len(told.nodes))
    for ref in story.homes.values():
        assert told.nodes[identity_of(Scope(), ref.id)].root == ref.root


def logged(settings: Settings) -> Sequence[Envelope]:
    """Return everything that is in the log."""
    redis = connect_redis(settings)
    log = EventLog(redis, settings)
    found = [e.envelope for p in range(settings.partitions) for e in log.read(p, count=100_000)]
    redis.close()
    return found


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(28))
def test_every_order_goes_through_the_bus(make_redis, make_trial, report, number):
    """G3: 720 families, each published in another order: every turn is in its own session."""
    trial = make_trial(make_redis(), "Keyed")
    family = Story(chances("bus", str(number)), "s")
    homes: dict[str, str] = {}
    with MemoryBus.connect(trial.settings) as bus:
        for count, order in enumerate(permutations(family.envelopes)):
            for envelope in order:
                one = renamed(envelope, "s", f"f{count}")
                event_id = bus.publish(
                    one.event, key=one.key, scope=one.scope, session=one.session, at=one.at
                ).event_id
                if envelope.id in family.homes:
                    homes[event_id] = one.session.root
        assert bus.flush("logged", 120), bus.problem
    trial.crew.start(2)
    trial.crew.wait_ready()
    wait_until(lambda: trial.in_flight() == 0, "all are applied", 120)
    trial.crew.stop()
    effects = trial.effects("keyed")
    found = {effect.event_id: effect.key for effect in effects}
    lost, twice = len(homes.keys() - found.keys()), len(effects) - len(found)
    report(faults=count + 1, events=len(homes), lost=lost, twice=twice)
    assert len(homes) >= 2 * ORDERS
    assert found == homes
    assert twice == 0
    told = fold(logged(trial.settings))
    assert_forest(told)
    shape = sorted(node.epoch for node in fold(family.envelopes).nodes.values())
    assert sorted(node.epoch for node in told.nodes.values()) == sorted(shape * ORDERS)
