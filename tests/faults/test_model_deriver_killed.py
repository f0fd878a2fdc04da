"""Workers that ask a model are killed, doubled and lied to: nothing twice, nothing lost."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.chat_server import ChatServer, chat_server
from helpers.services.thinking import derive
from helpers.stories.deriving import (
    DERIVING,
    conclusions,
    derives,
    kept_kinds,
    talk,
    tell_and_stop,
    worker_dying_at,
)
from helpers.stories.world import World
from memorybus.config.model_settings import ModelSettings
from memorybus_console.operations.forget import Eraser, ErasureOwner, plan_erasure

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

POINTS = ("derive.concluded", "derive.published", "derive.logged", "derive.settled")
SESSIONS = ("one", "two", "three")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A scripted model."""
    with chat_server() as chat:
        chat.script = derive
        yield chat


def settings_of(server: ChatServer, *derivers: str, **more: Any) -> dict[str, Any]:
    """Return settings of workers that ask the scripted model."""
    table = {"base_url": server.address, "name": "small", "timeout": 5.0, **more}
    model = msgspec.convert(table, ModelSettings)
    return DERIVING | {"derivers": derivers or ("model",), "model": model}


def of_model(world: World) -> list[dict[str, Any]]:
    """Return the model's conclusions in the log."""
    return [event for event in conclusions(world) if event["event"]["deriver"] == "model"]


def summaries(world: World) -> Counter[str]:
    """Return how many summaries of the model each session has."""
    events = [event for event in of_model(world) if event["event"]["kind"] == "summary"]
    return Counter(event["session"]["id"] for event in events)


def assert_once(world: World, *sessions: str) -> None:
    """Each session has one summary of the model, no event is there twice, and no fact."""
    wait_until(lambda: not derives(world), "the round has ended", 60)
    world.wait_applied()
    events = of_model(world)
    assert summaries(world) == dict.fromkeys(sessions, 1)
    assert len({event["id"] for event in events}) == len(events)
    facts = Counter(
        (event["session"]["id"], event["event"]["text"])
        for event in events
        if event["event"]["kind"] == "fact"
    )
    assert set(facts.values()) == {1}


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_a_point_is_followed(make_world, server, point):
    """G1, G4: wherever the worker dies, the next one concludes what is missing, nothing twice."""
    world = make_world(**settings_of(server))
    tell_and_stop(world, *SESSIONS)
    assert worker_dying_at(world, point).wait() == -9
    wait_until(lambda: not derives(world), "the turn of the dead worker has expired", 60)
    world.worker()
    wait_until(lambda: len(summaries(world)) == 3, "all sessions are concluded", 90)
    assert_once(world, *SESSIONS)


def test_a_worker_killed_while_the_model_thinks_is_followed(make_world, server):
    """G1: a call in flight is lost; its session is asked about again, once."""
    world = make_world(**settings_of(server))
    tell_and_stop(world, *SESSIONS)
    server.free.clear()
    child = world.worker()
    wait_until(lambda: server.asked == 1, "the model is asked")
    child.kill()
    server.free.set()
    wait_until(lambda: not derives(world), "the turn of the dead worker has expired", 60)
    world.worker()
    wait_until(lambda: len(summaries(world)) == 3, "all sessions are concluded", 90)
    assert_once(world, *SESSIONS)
    assert server.asked == 1 + len(SESSIONS)


def test_two_workers_ask_once(make_world, server):
    """G2: workers that start together ask the model as often as one."""
    world = make_world(**settings_of(server))
    tell_and_stop(world, *SESSIONS)
    for _ in range(2):
        world.worker()
    wait_until(lambda: len(summaries(world)) == 3, "all sessions are concluded", 90)
    assert_once(world, *SESSIONS)
    assert server.asked == len(SESSIONS)


def test_a_budget_that_ends_in_the_middle_leaves_the_rest_due(make_world, server):
    """G10: two calls are made, the third session waits for the next hour, and is then concluded."""
    world = make_world(**settings_of(server, "extractive", "model", calls_per_hour=2))
    tell_and_stop(world, *SESSIONS)
    child = world.worker()
    wait_until(lambda: len(summaries(world)) == 2, "the budget is used", 60)
    wait_until(lambda: kept_kinds(world).get("summary") == 5, "the extractive one has all", 60)
    assert server.asked == 2
    child.terminate()
    world.redis.hincrby(world.keys.model[0], "hour", -1)  # as the next hour does
    world.worker()
    wait_until(lambda: len(summaries(world)) == 3, "the next hour allows calls", 90)
    assert_once(world, *SESSIONS)


@pytest.mark.parametrize("fault", ["down", "lying"])
def test_a_model_that_fails_costs_the_extractive_deriver_nothing(make_world, server, fault):
    """G9: whatever the model does, what needs none is concluded, and turns go on."""
    world = make_world(**settings_of(server, "extractive", "model"))
    if fault == "down":
        server.status = 503
    else:
        server.script, server.text = None, "Once upon a time there was a novel."
    world.worker()
    with world.bus() as bus:
        talk(bus, "chat")
    wait_until(lambda: len(conclusions(world)) == 3, "the extractive one has concluded", 90)
    assert of_model(world) == []
    asked = server.asked
    assert asked <= 2


def test_a_person_who_is_forgotten_while_the_model_thinks_stays_forgotten(make_world, server):
    """G8: what a worker concludes of a person meanwhile is erased, or never published."""
    world = make_world(**settings_of(server))
    tell_and_stop(world, "chat")
    server.free.clear()
    world.worker()
    wait_until(lambda: server.asked == 1, "the model is asked")

    def answer_then(step: str) -> None:
        if step == "deriving":
            server.free.set()

    plan = plan_erasure(world.settings, ErasureOwner(user="ada"))
    erasure = Eraser(world.settings, 20.0, answer_then).erase(plan, "she asked", "tests")
    server.free.set()
    assert erasure.problems == []
    wait_until(lambda: not derives(world), "the round has ended", 60)
    world.wait_applied()
    assert kept_kinds(world) == {}
    assert conclusions(world) == []
