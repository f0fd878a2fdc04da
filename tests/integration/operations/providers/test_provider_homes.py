"""Local providers stay where their state lies, and move when an operator says so."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.commands import Ran, run_command
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, environ, home, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Homes
from memorybus.registry.homes import local_home as place
from memorybus.registry.instances import Instance, Live
from memorybus_console.operations.providers import removal
from memorybus_console.operations.providers.inventory import check_homes, list_instances
from memorybus_console.operations.stores import Stores

STAYS = "this worker does not serve it"


@pytest.fixture(name="places")
def _places(
    redis_client: redis.Redis, make_settings: MakeSettings, short_dir: Path
) -> tuple[Settings, Settings]:
    """Return the settings of two data directories that share a log and name one local provider."""
    local = {"providers": (NAME,), "provider": {NAME: {"kind": "helpers.providers.local:Local"}}}
    first = make_settings(data_dir=short_dir / "a", **local)
    return first, make_settings(data_dir=short_dir / "b", **local)


def provider(settings: Settings, *words: str) -> Ran:
    """Run one `memorybus provider` command where a data directory is."""
    told = environ(settings) | {"PATH": "/usr/bin:/bin"}
    return run_command(told, "provider", *words, alone=True)


def listed(settings: Settings) -> dict[str, object]:
    """Return what `provider ls` says of the provider."""
    done = provider(settings, "ls", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    return dict(found)


def publish(settings: Settings, *numbers: int) -> None:
    """Publish turns of one session."""
    with MemoryBus.connect(settings) as bus:
        for number in numbers:
            bus.session("s", warm=False).turn_completed(f"turn {number}", "ok", ordinal=number)
        assert bus.flush("logged", 25)


def test_a_local_provider_is_served_where_its_state_lies(redis_client, places, spawn):
    """G4: the first place is the home; a worker elsewhere serves nothing of it and says so once."""
    here, there = places
    first = worker(spawn, here)
    second = worker(spawn, there)
    second.wait_output(STAYS)
    publish(here, 0, 1, 2)
    wait_applied(redis_client, here)
    assert texts(home(here)) == ["turn 0", "turn 1", "turn 2"]
    first.kill()
    publish(here, 3)
    worker(spawn, here)
    wait_applied(redis_client, here)
    assert texts(home(here)) == ["turn 0", "turn 1", "turn 2", "turn 3"]
    assert not home(there).exists(), "a worker that is not at home opens nothing"
    assert second.output().count(STAYS) == 1


def test_the_list_says_where_the_home_is(redis_client, places, spawn):
    """`provider ls` tells the home's host and path, whether it is here, lanes and backlog."""
    here, there = (msgspec.structs.replace(place, lease=30.0) for place in places)
    assert listed(here)["home"] is None
    worker(spawn, here)
    publish(here, 0)
    wait_applied(redis_client, here)
    mine, theirs = listed(here), listed(there)
    assert (mine["here"], theirs["here"]) == (True, False)
    assert mine["home"]["path"] == str(here.data_dir)
    assert mine["home"] == theirs["home"]
    assert (mine["lanes_owned"], mine["lanes"], mine["backlog"]) == (16, 16, 0)
    assert (mine["delivery"], mine["placement"]) == ("transactional", "local")
    assert not (there.data_dir / "place").exists(), "looking makes nothing"
    shown = provider(there, "ls").stdout
    assert str(here.data_dir) in shown


def test_the_doctor_names_a_home_that_nobody_serves(redis_client, places, spawn):
    """An unreachable home is told with its place and both remedies; one that is served is fine."""
    here, there = places
    child = worker(spawn, here)
    served = check_homes(list_instances(there))
    assert served.ok
    assert str(here.data_dir) in served.found
    assert child.terminate() == 0
    away = check_homes(list_instances(there))
    assert not away.ok
    assert str(here.data_dir) in away.found
    assert "memorybus provider move rec" in away.fix


def test_a_provider_moves_with_its_state(redis_client, places, spawn):
    """G3, G4: stopped, copied, moved: the new home goes on where the old one was."""
    here, there = places
    first = worker(spawn, here)
    publish(here, 0, 1)
    wait_applied(redis_client, here)
    assert first.terminate() == 0
    shutil.copytree(home(here), home(there))
    dry = provider(there, "move", "rec")
    assert (dry.returncode, "nothing was done" in dry.stderr) == (0, True), dry.stderr
    assert listed(there)["here"] is False
    done = provider(there, "move", "rec", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    moved = json.loads(done.stdout)
    assert (moved["executed"], moved["state_found"]) == (True, True)
    assert moved["from"]["path"], moved["to"]["path"] == (str(here.data_dir), str(there.data_dir))
    publish(here, 2)
    worker(spawn, here).wait_output(STAYS)
    worker(spawn, there)
    wait_applied(redis_client, there)
    assert texts(home(there)) == ["turn 0", "turn 1", "turn 2"]
    assert texts(home(here)) == ["turn 0", "turn 1"]


def test_a_move_without_state_starts_from_the_beginning(redis_client, places, spawn):
    """G4, G8: if the place is lost, a transactional provider is rebuilt in the new one."""
    here, there = places
    worker(spawn, here)
    publish(here, 0, 1)
    wait_applied(redis_client, here)
    spawn.end_all()
    for lease in redis_client.scan_iter("*lease*"):
        redis_client.delete(lease)  # long expired when a place is given up
    assert "from the log's beginning" in provider(there, "move", "rec", "--yes").stderr
    worker(spawn, there)
    wait_until(lambda: texts(home(there)) == ["turn 0", "turn 1"], "all is applied again")


def test_a_served_provider_does_not_move(redis_client, places, spawn):
    """G4: while a worker owns lanes a move is refused, and forced it takes effect by itself."""
    here, there = (msgspec.structs.replace(place, lease=30.0) for place in places)
    first, second = worker(spawn, here), worker(spawn, there)
    publish(here, 0)
    wait_applied(redis_client, here)
    refused = provider(there, "move", "rec", "--yes")
    assert refused.returncode == 1
    assert "16 lanes of rec are owned by live workers" in refused.stderr
    assert listed(there)["here"] is False
    assert provider(there, "move", "rec", "--yes", "--force").returncode == 0
    first.wait_output(STAYS)
    wait_until(lambda: texts(home(there)) == ["turn 0"], "the new home has taken over")
    publish(here, 1)
    wait_until(lambda: texts(home(there)) == ["turn 0", "turn 1"], "the new home caught up")
    assert texts(home(here)) == ["turn 0"]
    assert second.alive


def test_all_generations_move(redis_client, places):
    """G4: what serves, what is kept and copies move with their provider, asked by any name.

    One that is dropped stays: its state is removed where it lies. Who has no state here is named.
    """
    here, there = places
    first = place(here)
    with Stores(here) as stores:
        for name in ("rec@1", "rec@2", "gone"):
            stores.add_instance(Instance(name=name, provider=NAME, dropped=name == "gone"))
        for name in (NAME, "rec@1", "rec@2", "gone"):
            stores.homes.move(name, first)
        stores.instances.swap(NAME, None, Live("rec@2", "rec@1"))
        (home(there, "rec@2") / "kept").mkdir(parents=True)
        move = removal.plan_move(there, "rec@2")
        assert (move.provider, move.along, move.bare) == (NAME, ("rec@1", "rec@2"), ("rec@1",))
        assert (move.origin, move.state_found) == (first, True)
        assert "Nothing lies here of rec@1" in removal.describe_consequence(move)
        assert removal.carry_out(there, move, force=False).executed
        homes = stores.homes.all()
    assert homes.pop("gone") == first
    assert set(homes.values()) == {place(there)}
    assert not removal.plan_move(there, NAME).needed
    assert removal.plan_move(here, NAME).needed


def test_a_moved_provider_is_at_home(redis_client, places, spawn):
    """Moving to where it is changes nothing and is no error."""
    here, _ = places
    worker(spawn, here)
    done = provider(here, "move", "rec", "--yes")
    assert (done.returncode, "already has its home here" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("name", "says"), [("rek", "did you mean rec?"), ("plain", "plain is shared")]
)
def test_what_cannot_move_is_told(redis_client, make_settings, spawn, name, says):
    """G10: an instance nobody knows, and a shared one, are wrong usage."""
    tables = {"rec": {"kind": "builtin"}, "plain": {"kind": "helpers.providers.recording:Keyed"}}
    settings = make_settings(providers=("rec", "plain"), provider=tables)
    worker(spawn, settings)
    done = provider(settings, "move", name, "--yes")
    assert done.returncode == 2
    assert says in done.stderr
    assert set(Homes(redis_client, Keys(settings.namespace)).all()) == {"rec"}
