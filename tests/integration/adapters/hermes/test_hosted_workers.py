"""Hosted Hermes plugins under a real worker: lanes, recall processes, kills, several at once."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.fake_hermes import PLUGINS, python_of
from helpers.hosted.hosted import calls, children, ended, is_alive, sent, turns
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus_console.operations.doctor.instances import check_notes
from memorybus_console.operations.providers.inventory import list_instances

MakeHosted = Callable[..., Settings]

pytestmark = pytest.mark.usefixtures("redis_server")


@pytest.fixture
def make_hosted(make_settings: MakeSettings, short_dir: Path) -> Iterator[MakeHosted]:
    """Make settings with recorders of these names as the providers, or with another plugin."""
    python, homes = str(python_of(short_dir)), []

    def make(*names: str, call_timeout: float = 20.0, plugin: str = "recorder") -> Settings:
        kind = f"hermes:{PLUGINS / plugin}"
        table = {"kind": kind, "hermes_python": python, "idle": 1.0}
        settings = make_settings(
            partitions=4,
            providers=names,
            provider=dict.fromkeys(names, table),
            call_timeout=call_timeout,
            lease=1.5 * call_timeout,
            recall_wait=20.0,
            recall_timeout=60.0,
        )
        homes.extend(settings.provider_home(name) for name in names)
        return settings

    with ended(homes):
        yield make


def hermes_home(settings: Settings, name: str) -> Path:
    """Return an instance's HERMES_HOME."""
    return settings.provider_home(name) / "hermes"


def dead_letters(settings: Settings) -> int:
    """Count the dead letters of all providers."""
    return sum(one.dead_letters for one in read_status(settings).providers)


def test_two_plugins_behind_one_agent(make_hosted, spawn):
    """Each gets every event in order (G3), each recalls, and neither knows of the other."""
    settings = make_hosted("one", "two")
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1")
        for number in range(5):
            session.turn_completed(f"turn {number} of the cat", "ok")
        expected = [f"turn {number} of the cat" for number in range(5)]
        for name in ("one", "two"):
            home = hermes_home(settings, name)
            wait_until(lambda home=home: turns(home) == expected, f"{name} has all", 20)
        session.queue_prefetch("the cat")

        def both() -> bool:
            block = session.prefetch("the cat")
            warm = session._bus.warm.read(session._warm_keys)
            return set(warm) == {"one", "two"} and "turn 4 of the cat" in block

        wait_until(both, "both have recalled what they heard last", 40)
    for name in ("one", "two"):  # the recall process asked the lane's child
        assert len({one["pid"] for one in calls(hermes_home(settings, name))}) == 1
    assert dead_letters(settings) == 0
    told = check_notes(list_instances(settings)).found
    assert "one: hosted Hermes plugin recorder" in told


def test_killed_children_cost_no_event(make_hosted, spawn):
    """kill -9 of the child, again and again: every turn is applied, in order, none is parked."""
    settings = make_hosted("one")
    home = hermes_home(settings, "one")
    worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1", warm=False)
        for number in range(6):
            session.turn_completed(f"turn {number}", "ok")
            wait_until(lambda n=number: f"turn {n}" in turns(home), f"turn {number}", 20)
            (child,) = children(settings.provider_home("one"))
            os.kill(child, signal.SIGKILL)
    seen = list(dict.fromkeys(turns(home)))
    assert seen == [f"turn {number}" for number in range(6)]
    assert dead_letters(settings) == 0


def test_children_killed_amid_writes_lose_and_double_no_more_than_promised(make_hosted, spawn):
    """G3, G4: kill -9 while turns are sent: each is there, and a kill leaves one copy at most."""
    settings = make_hosted("one", plugin="writer")
    home, kills = hermes_home(settings, "one"), 0
    worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1", warm=False)
        for number in range(12):
            session.turn_completed(f"turn {number}", "ok")
        for upto in (1, 3, 6):
            wait_until(lambda n=upto: len(sent(home)) >= n, f"{upto} turns are sent", 40)
            for child in children(settings.provider_home("one")):
                os.kill(child, signal.SIGKILL)
                kills += 1
        wait_until(lambda: sent(home)[-1:] == ["turn 11"], "all turns are sent", 90)
        wait_until(lambda: not read_status(settings).providers[0].backlog, "all count", 40)
    expected = [f"turn {number}" for number in range(12)]
    assert list(dict.fromkeys(sent(home))) == expected
    assert len(sent(home)) <= len(expected) + kills
    assert dead_letters(settings) == 0


@pytest.mark.long
def test_a_hanging_call_ends_the_child_not_the_worker(make_hosted, spawn, tmp_path):
    """The event is tried again in another process; the worker's threads never hang."""
    settings = make_hosted("one", call_timeout=12.0)  # its last fifth is for the child's end
    home, hangs = hermes_home(settings, "one"), tmp_path / "hangs"
    hangs.touch()
    running = worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1", warm=False)
        session.turn_completed(f"!hang={hangs}", "ok")
        wait_until(lambda: calls(home, "hanging"), "the call hangs", 20)
        (child,) = children(settings.provider_home("one"))
        wait_until(lambda: not is_alive(child), "its process is ended", 30)
        hangs.unlink()
        session.turn_completed("the next", "ok")
        wait_until(lambda: turns(home)[-1:] == ["the next"], "both are applied", 20)
    assert turns(home) == [f"!hang={hangs}", "the next"]
    assert dead_letters(settings) == 0
    assert running.alive
    assert "longer than it may" not in running.output()


def test_a_backend_that_is_down_parks_nothing(make_hosted, spawn, tmp_path):
    """The plugin's ConnectionError makes the lanes wait, and they go on by themselves (G6)."""
    settings = make_hosted("one")
    home, down = hermes_home(settings, "one"), tmp_path / "down"
    down.touch()
    worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1", warm=False)
        session.turn_completed(f"!down={down}", "ok")
        session.turn_completed("the next", "ok")

        def failing() -> bool:
            return any(one.failing for one in read_status(settings).providers)

        wait_until(failing, "status says that calls fail", 20)
        down.unlink()
        wait_until(lambda: turns(home)[-1:] == ["the next"], "both are applied", 40)
    assert len(turns(home)) == 2
    assert dead_letters(settings) == 0


def test_a_writer_that_never_ends_holds_up_no_lane(make_hosted, spawn):
    """Each turn is applied once and in order (G3, G4), also when the backend was away meanwhile."""
    settings = make_hosted("one", plugin="writer")
    home = hermes_home(settings, "one")
    worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s1", warm=False)
        session.turn_completed("turn 0", "ok")
        wait_until(lambda: sent(home) == ["turn 0"], "the first turn", 40)
        (home / "down").touch()
        for number in (1, 2):
            session.turn_completed(f"turn {number}", "ok")

        def failing() -> bool:
            return any(one.failing for one in read_status(settings).providers)

        wait_until(failing, "status says that calls fail", 40)
        (home / "down").unlink()
        session.turn_completed("turn 3", "ok")
        wait_until(lambda: sent(home)[-1:] == ["turn 3"], "all are applied", 60)
    assert sent(home) == [f"turn {number}" for number in range(4)]
    assert dead_letters(settings) == 0


def test_a_refused_event_parks_its_session_only(make_hosted, spawn):
    """What the plugin refuses is a dead letter with the plugin's words; others go on (G6)."""
    settings = make_hosted("one")
    home = hermes_home(settings, "one")
    worker(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        bus.session("bad", warm=False).turn_completed("!type", "ok")
        bus.session("good", warm=False).turn_completed("fine", "ok")
        wait_until(lambda: turns(home) == ["fine"], "the other session's turn", 20)
        wait_until(lambda: dead_letters(settings) == 1, "one dead letter", 20)
