"""Two people's sessions may bear the same id: nothing of the one is the other's."""

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.log import logged
from helpers.stories.scenario import PATIENT, home, recorded, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.events import Scope, TurnCompleted
from memorybus.recall.model import WarmResult
from memorybus.redis.keys import Keys, session_key

OWNERS = (
    Scope(agent="a", user="ann"),
    Scope(agent="a", user="ben"),
    Scope(agent="b", user="ann"),
    Scope(agent="a", user="ann", workspace="boat"),
)


def session_of(bus: MemoryBus, scope: Scope) -> Session:
    """Return an owner's session of the one id."""
    return bus.session(
        "s", agent=scope.agent, user=scope.user, workspace=scope.workspace, warm=False
    )


@pytest.mark.parametrize("kind", ["Transactional", "Keyed", "Lookup", "Blind"])
def test_one_persons_poison_holds_up_no_namesake(redis_client, make_settings, kind):
    """G6: a refused event parks its own person's session; others of the same id go on."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        poisoned, *others = [session_of(bus, scope) for scope in OWNERS]
        poisoned.turn_completed("!permanent poison", "ok")
        for session in (poisoned, *others):
            session.turn_completed("after", "ok")
        assert bus.flush()
        with thread_worker(settings):
            wait_applied(redis_client, settings)
        assert texts(home(settings)) == ["after"] * len(others)
        assert redis_client.hkeys(Keys(settings.namespace).parked(0, "rec")) == [
            poisoned.key.encode()
        ]


def test_the_same_turn_of_two_people_is_two_events(redis_client, settings):
    """G2: an id is derived from whose the turn is, too; said again by one person it is known."""
    with MemoryBus.connect(settings) as bus:
        for _ in range(2):
            for scope in OWNERS:
                session_of(bus, scope).turn_completed("Good morning.", "Good morning.", ordinal=0)
        assert bus.flush()
    found = [event.envelope for event in logged(settings)]
    turns = [one for one in found if isinstance(one.event, TurnCompleted)]
    assert len(turns) == len(OWNERS)
    assert len({one.id for one in turns}) == len({one.key for one in turns}) == len(OWNERS)
    assert {one.key for one in found} == {session_key(scope, "s") for scope in OWNERS}


def test_a_branch_of_one_is_known_to_nobody_else(settings):
    """G3: a host knows where each person's session stands, whatever others call theirs."""
    with MemoryBus.connect(settings) as bus:
        first, *others = [session_of(bus, scope) for scope in OWNERS]
        branch = first.branch("twig")
        for session in others:
            resumed = session.switched_to("twig", reason="resume")
            assert (resumed.ref.root, resumed.key == branch.key) == ("twig", False)
        again = first.switched_to("twig", reason="resume")
        assert (again.ref.root, again.key) == ("s", first.key)


def test_a_warm_answer_is_its_own_persons(redis_client, settings):
    """G9: what is warm for one person's session is never another's of the same id."""
    with MemoryBus.connect(settings) as bus:
        keys = Keys(settings.namespace)
        sessions = [session_of(bus, scope) for scope in OWNERS]
        for number, session in enumerate(sessions[:-1]):
            bus.warm.connect()
            warm = keys.warm(session.slot)
            answer = WarmResult((f"- the answer of {number}",), asked="")
            redis_client.hset(warm, "rec", msgspec.msgpack.encode(answer))
            redis_client.expire(warm, 60)
        for number, session in enumerate(sessions[:-1]):
            found = wait_until(session.prefetch, "it is read", 20)
            assert f"the answer of {number}" in found
            assert found.count("the answer of") == 1
        assert sessions[-1].prefetch() == ""
