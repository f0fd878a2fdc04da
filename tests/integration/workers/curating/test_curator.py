"""The curator of a running bus: what it changes, shows, takes back, and does not do twice."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.curated_bus import NAME, SURE, CuratedBus
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import environ, worker
from memorybus.events import OperatorActed
from memorybus.redis.keys import Keys
from memorybus.registry.curation import CuratorBusy
from memorybus_console.actions.action import Ground
from memorybus_console.actions.curation import (
    AcceptRepetitions,
    PinMemory,
    RunCurator,
    UndoCuration,
    UnpinMemory,
)
from memorybus_console.operations.curation import read_report, read_status

pytestmark = pytest.mark.timeout(300)

OLD = ("Ana parks in row seven.", "Ana's gate code is 4711.")
YOUNG = "Ana collects stamps."


@pytest.fixture
def bus(
    redis_url: str, redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> Iterator[CuratedBus]:
    """Return a bus on which Ana has two old memories and a young one."""
    settings = make_settings(url=redis_url, providers=("builtin", NAME), user="ana", **SURE)
    child = worker(spawn, settings, jobs=1)
    bus = CuratedBus(settings, redis_client)
    bus.remember(*OLD, days=100)
    bus.remember(YOUNG)
    yield bus
    assert child.terminate() == 0


def test_memories_grow_stale_then_leave_prompts_and_a_run_is_taken_back(bus, spawn):
    """A run is planned, done, shown and undone; archived memories are listed; a rebuild repeats."""
    plan = RunCurator().plan(Ground(bus.settings, "ops"))
    assert {line.text: line.change for line in plan.changes} == dict.fromkeys(OLD, "active → stale")
    assert plan.unable == {"builtin": "it keeps no states of memories"}
    assert bus.events() == []

    bus.act(RunCurator())
    assert bus.states() == dict.fromkeys(OLD, "stale") | {YOUNG: "active"}
    assert all(text in bus.block() for text in OLD)

    later = bus.act(RunCurator(), days=29)
    assert later.changes == ()
    archiving = bus.act(RunCurator(), days=61)
    assert bus.states() == dict.fromkeys(OLD, "archived") | {YOUNG: "stale"}
    block = bus.block()
    assert not any(text in block for text in OLD), block
    listed = ran(spawn, bus.settings, "memories", "list", "--archived")["memories"]
    assert {(one["text"], one["state"]) for one in listed} == {(text, "archived") for text in OLD}

    assert read_report(bus.settings).changes == archiving.changes
    done = ran(spawn, bus.settings, "rebuild", NAME, "--yes")
    assert done["compared"]["differing"] == 0
    assert bus.states() == dict.fromkeys(OLD, "archived") | {YOUNG: "stale"}

    bus.act(UndoCuration(run=archiving.run))
    assert bus.states() == dict.fromkeys(OLD, "stale") | {YOUNG: "active"}
    assert all(text in bus.block() for text in OLD)


def test_what_a_person_pins_never_ages(bus):
    """A pin is an event and an act on the record; an unpinned memory ages from then on."""
    pinned = bus.ids()[OLD[0]]
    bus.act(PinMemory(memory=pinned, reason="an allergy"))
    bus.act(RunCurator())
    bus.act(RunCurator(), days=400)
    assert bus.states()[OLD[0]] == "pinned"
    assert bus.states()[OLD[1]] == "archived"

    bus.act(UnpinMemory(memory=pinned))
    bus.act(RunCurator())
    assert bus.states()[OLD[0]] == "active"
    acts = [one.act for one in bus.logged() if isinstance(one, OperatorActed)]
    assert acts.count("pin memory") == acts.count("unpin memory") == 1


def test_a_clock_that_was_set_back_undoes_its_harm(bus):
    """A year ahead, memories grow stale and none is archived; set back, the young one recovers."""
    bus.act(RunCurator(), days=365)
    assert bus.states() == dict.fromkeys((*OLD, YOUNG), "stale")

    bus.act(RunCurator())
    assert bus.states() == dict.fromkeys(OLD, "stale") | {YOUNG: "active"}
    bus.act(PinMemory(memory=bus.ids()[OLD[0]]))
    assert bus.states()[OLD[0]] == "pinned"


def test_a_repetition_is_archived_and_a_longer_text_waits_for_a_person(bus):
    """The same words are archived but once; what a longer memory contains waits; undo pins both."""
    bus.remember("ana collects  stamps!", "Ana never parks in row seven. She walks")
    run = bus.act(RunCurator())
    again = bus.act(RunCurator())

    states = bus.states()
    assert sorted((states["Ana collects stamps."], states["ana collects  stamps!"])) == [
        "active",
        "archived",
    ]
    assert again.changes == ()
    assert run.waiting == ()

    bus.remember("Bo says: Ana parks in row seven. On Mondays.")
    waiting = bus.act(RunCurator())
    assert [line.text for line in waiting.waiting] == [OLD[0]]
    assert bus.states()[OLD[0]] == "stale"
    bus.act(AcceptRepetitions(run=waiting.run))
    assert bus.states()[OLD[0]] == "archived"

    bus.act(UndoCuration(run=run.run))
    both = {text: bus.states()[text] for text in ("Ana collects stamps.", "ana collects  stamps!")}
    assert set(both.values()) == {"pinned"}
    assert bus.act(RunCurator()).changes == ()


def test_with_review_every_repetition_waits(bus):
    """`--review` archives nothing by itself, and what waits is archived when it is accepted."""
    bus.remember("ANA COLLECTS STAMPS.")
    run = bus.act(RunCurator(repetitions="review"))
    assert len(run.waiting) == 1
    assert "archived" not in bus.states().values()

    bus.act(AcceptRepetitions(run=run.run))
    assert list(bus.states().values()).count("archived") == 1


@pytest.mark.parametrize("place", ["curator.published", "curator.aged"])
def test_a_killed_run_is_neither_repeated_nor_waited_for(bus, spawn, place):
    """After kill -9 the next run does what is left: each memory changes once."""
    bus.remember("Ana likes tea.", "ana likes tea", days=100)
    dying = environ(bus.settings) | {"MEMORYBUS_CRASH_AT": place}
    child = spawn("-m", "memorybus", "curator", "run", env=dying)
    assert child.wait(60) == -9

    status = read_status(bus.settings)
    assert [run.phase for run in status.runs] in (
        ["ageing"],
        ["repetitions"],
    )
    assert status.running == status.runs[0].run
    with pytest.raises(CuratorBusy, match="makes room within 60 s"):
        bus.act(RunCurator())
    bus.client.pexpire(Keys(bus.settings.namespace).curator_lease, 1)
    wait_until(lambda: not bus.runs.leased(), "the lease has expired")

    assert read_status(bus.settings).runs[0].phase.startswith("ended while")
    # The worker sends what the dead process had spooled.
    wait_until(lambda: bus.events() or place == "curator.published", "its events are logged")
    bus.act(RunCurator())
    bus.act(RunCurator())

    changes = [(event.memory, event.after) for event in bus.events()]
    assert len(changes) == len(set(changes)) == 5  # four grow stale, one repeats another
    assert read_status(bus.settings).runs[0].phase == "done"


def test_two_runs_never_work_at_once(bus):
    """A run that finds another one at work changes nothing, and names it."""
    bus.runs.take_lease("another")

    with pytest.raises(CuratorBusy, match="another"):
        bus.act(RunCurator())
    assert bus.events() == []
    with pytest.raises(CuratorBusy, match="was suspended"):
        bus.runs.keep_lease("a run that lost it")


def test_workers_run_it_when_it_is_due(bus, spawn, make_settings):
    """Of two workers with a schedule, each time that it is due, one lets the curator run."""
    table = {**SURE, "curator_every": 2.0}
    settings = make_settings(
        url=bus.settings.url, namespace=bus.settings.namespace, providers=("builtin", NAME),
        user="ana", **table,
    )  # fmt: skip
    others = [worker(spawn, settings, jobs=0) for _ in range(2)]

    def ended() -> list[Any]:
        return [run for run in bus.runs.newest() if run.ended]

    wait_until(lambda: len(ended()) >= 2, "two scheduled runs have ended", 120)

    assert all(run.by.startswith("worker on ") for run in ended())
    assert bus.states() == dict.fromkeys(OLD, "stale") | {YOUNG: "active"}
    assert len(bus.events()) == len(OLD)
    for other in others:
        assert other.terminate() == 0


def test_nothing_is_due_at_first_sight(bus):
    """A schedule begins to count when it first sees the bus, and survives a clock set back."""
    assert bus.runs.take_due(60_000) is False
    assert bus.runs.take_due(60_000) is False
    assert bus.runs.take_due(10) is True  # later than any time that this schedule would have set
    wait_until(lambda: bus.runs.take_due(10), "it is due again")
