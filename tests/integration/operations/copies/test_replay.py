"""Replay: the history into a fresh instance, as the live one became."""

import signal

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import state_digest, texts
from helpers.stories.replaying import begun, cli, command, described_here, lines, replay
from helpers.stories.scenario import home, recorded, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.query.query import Query
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes
from memorybus.testing import FakeClock
from memorybus_console.operations.copies.replay import ReplayRequest, begin_replay, plan_replay
from memorybus_console.operations.stores import Stores

SLOW = "!takes=0.005 "
"""Before each turn's text: a replay takes seconds, and is met in the midst of them."""


def fill(settings: Settings, count: int = 40, before: str = "") -> None:
    """Publish turns and writes of several sessions."""
    with MemoryBus.connect(settings) as bus:
        for name in ("a", "b", "c", "d"):
            session = bus.session(name, warm=False)
            for number in range(count):
                session.turn_completed(f"{before}{name} {number}", "ok", ordinal=number)
            session.memory_written("add", f"{name} remembers", store="user")
        assert bus.flush("logged", 25)


def wait_leases_ended(client: redis.Redis, settings: Settings) -> None:
    """Wait until nobody owns a lane of the copy."""
    leases = f"{settings.namespace}:*:lease:copy"
    wait_until(lambda: not list(client.scan_iter(leases)), "its leases have ended")


@pytest.mark.parametrize("kind", ["Transactional", "Keyed"])
def test_a_replay_equals_the_live_state(redis_client, make_settings, kind):
    """G8: the log replayed into a fresh instance gives the digest of the live one."""
    settings = make_settings(batch=16, **recorded(kind))
    fill(settings)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    result = replay(settings)
    assert (result.applied, result.parked) == (4 * 42, 0)
    assert state_digest(home(settings, "copy")) == state_digest(home(settings))
    assert len(texts(home(settings, "copy"))) == 4 * 41


def test_the_real_providers_are_equal_too(redis_client, make_settings):
    """G8: MEMORY.md and USER.md after a replay are byte for byte the live ones."""
    settings = make_settings(providers=("builtin",))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for number in range(20):
            session.memory_written("add", f"note {number} of the garden")
        session.memory_written("replace", "a better note", old_text="note 7 of")
        session.memory_written("remove", old_text="note 3 of")
        session.memory_written("add", "Ann likes roses", store="user")
        assert bus.flush(timeout=25)
    with thread_worker(settings):
        wait_applied(redis_client, settings, "builtin")
    replay(settings, provider="builtin")
    live, copy = settings.provider_home("builtin"), settings.provider_home("copy")
    files = sorted(path.relative_to(live) for path in live.rglob("*.md"))
    assert len(files) == 2
    for file in files:
        assert (copy / file).read_bytes() == (live / file).read_bytes()


def test_an_interrupted_replay_goes_on(redis_client, make_settings, spawn):
    """G8: a replay that was killed, then told to end, goes on where it was and doubles nothing."""
    settings = make_settings(lease=1.0, call_timeout=0.5, batch=5, **recorded("Transactional"))
    fill(settings, 150, SLOW)
    for how in (signal.SIGKILL, signal.SIGINT):
        child = command(spawn, settings)
        before = len(texts(home(settings, "copy")))
        wait_until(
            lambda before=before: len(texts(home(settings, "copy"))) > before + 50, "it fills"
        )
        child.send(how)
        code = child.wait()
        if how is signal.SIGINT:
            assert code == 130
            assert "the same command continues" in child.output()
        wait_leases_ended(redis_client, settings)
    child = command(spawn, settings)
    assert child.wait() == 0, child.output()
    last = lines(child)[-1]
    assert (last["finished"], last["done"]) == (True, 4 * 152 + 1), "with the record of the act"
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert state_digest(home(settings, "copy")) == state_digest(home(settings))
    assert len(texts(home(settings, "copy"))) == 4 * 151


def test_a_replay_survives_the_loss_of_its_leases(redis_client, make_settings, spawn):
    """G5: a worker frozen over its leases takes its lanes again and the copy comes to its end."""
    settings = make_settings(lease=1.0, call_timeout=0.5, batch=5, **recorded("Transactional"))
    fill(settings, 150, SLOW)
    child = command(spawn, settings)
    wait_until(lambda: len(texts(home(settings, "copy"))) > 50, "it fills")
    (worker,) = [
        one for one in spawn.descendants() if "copy" in one.cmdline() and one.pid != child.pid
    ]
    worker.suspend()
    wait_leases_ended(redis_client, settings)
    worker.resume()
    assert child.wait() == 0, child.output()
    assert len(texts(home(settings, "copy"))) == 4 * 151


def test_replay_refuses_a_live_target(redis_server, make_settings):
    """G8: a replay never goes into a live instance, nor to a name that is none."""
    settings = make_settings(**recorded("Transactional"))
    for wrong in ("rec", "", "../x", "a b", ".hidden", "@1"):
        with pytest.raises(ConfigError):
            begun(settings, wrong)
    with Stores(settings) as stores:
        assert stores.instances.all() == {}


def test_replay_refuses_a_target_that_is_not_empty(redis_client, make_settings):
    """G8: what is there already would be mixed with the history: only with force."""
    settings = make_settings(**recorded("Transactional"))
    home(settings, "files").mkdir(parents=True)
    (home(settings, "files") / "something").touch()
    redis_client.hset(Keys(settings.namespace).lane(3, "lanes"), "epoch", 1)
    for wrong in ("files", "lanes"):
        with pytest.raises(ConfigError, match="not empty"):
            begun(settings, wrong)
        begun(settings, wrong, force=True)


def test_a_shared_state_gets_no_second_writer(redis_client, make_settings):
    """G8: a copy without a place of its own would write over the live one."""
    settings = make_settings(**recorded("KeyedShared"))
    with pytest.raises(ConfigError, match="--set collection"):
        begun(settings)
    plan = begun(settings, options={"collection": "other"})
    assert (plan.placement, plan.home) == ("shared", None)


def test_two_replays_into_one_target_are_one(redis_client, make_settings, spawn):
    """G5: who gives the same command again joins the first; another plan is refused."""
    settings = make_settings(batch=5, **recorded("Transactional"))
    fill(settings, 200)
    both = [command(spawn, settings) for _ in range(2)]
    known = 4 * 202 + 1, 4 * 202 + 2  # the second act may be recorded after the plan was made
    for child in both:
        assert child.wait() == 0, child.output()
        assert lines(child)[-1]["done"] in known
    assert len(texts(home(settings, "copy"))) == 4 * 201
    with pytest.raises(ConfigError, match="another plan"):
        begun(settings, query=Query(sessions=("a",)))


def test_who_is_late_by_a_moment_joins(redis_client, make_settings):
    """A copy made between plan and beginning is joined if it is of the same plan."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 3)
    with Stores(settings) as stores:
        same = [
            ReplayRequest(provider="rec", into="copy", reason=word) for word in ("first", "second")
        ]
        other = ReplayRequest(provider="rec", into="copy", query=Query(sessions=("a",)))
        plans = [plan_replay(stores, wanted, describe=described_here) for wanted in (*same, other)]
        first, second = (begin_replay(stores, plans[n], same[n]) for n in (0, 1))
        assert second.instance == first.instance
        with pytest.raises(ConfigError, match="another plan"):
            begin_replay(stores, plans[2], other)


def test_who_comes_while_a_copy_is_being_made_joins(redis_client, make_settings):
    """Lanes without a record are another's half-made copy for a moment, then what was left over."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 3)
    wanted = ReplayRequest(provider="rec", into="copy")
    with Stores(settings) as stores:
        first = plan_replay(stores, wanted, describe=described_here)
        redis_client.hset(Keys(settings.namespace).lane(3, "copy"), "epoch", 1)
        with pytest.raises(ConfigError, match="not empty"):
            plan_replay(stores, wanted, clock=FakeClock(), describe=described_here)

        class Meanwhile(FakeClock):
            def sleep(self, seconds: float) -> None:
                begin_replay(stores, first, wanted)

        joined = plan_replay(stores, wanted, clock=Meanwhile(), describe=described_here)
        assert (joined.known, joined.instance) == (True, first.instance)


def test_a_lineage_that_grew_goes_on(redis_client, make_settings):
    """G8: the same command goes on with the lineage as it was when the copy was begun."""
    settings = make_settings(**recorded("Transactional"))
    asked = Query(lineages=("root",))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("root", warm=False)
        session.branch("one").turn_completed("one", "ok", ordinal=0)
        assert bus.flush("logged", 25)
        first = begun(settings, query=asked)
        session.branch("two").turn_completed("two", "ok", ordinal=0)
        assert bus.flush("logged", 25)
    again = begun(settings, query=asked)
    assert (again.known, again.instance) == (True, first.instance)
    replay(settings, query=asked)
    assert texts(home(settings, "copy")) == ["one"]
    with pytest.raises(ConfigError, match="another plan"):
        begun(settings, query=Query(sessions=("root", "one")))


def test_poison_is_parked_in_the_copy_too(redis_client, make_settings):
    """G6: a replay parks what the provider refuses, in the target's own lane, and ends."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        bus.session("bad", warm=False).turn_completed("!permanent", "")
        bus.session("good", warm=False).turn_completed("fine", "")
        assert bus.flush(timeout=25)
    result = replay(settings)
    assert (result.applied, result.parked) == (3, 1)
    assert texts(home(settings, "copy")) == ["fine"]
    assert not list(redis_client.scan_iter("*dead:rec"))


def test_a_plan_takes_what_is_asked(redis_client, make_settings):
    """G8: by session and type: the copy then holds these events and no others."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 10)
    replay(settings, "one", query=Query(sessions=("a",), types=("TurnCompleted",)))
    assert texts(home(settings, "one")) == [f"a {number}" for number in range(10)]


def test_strangers_are_no_events(redis_client, make_settings):
    """G8, G9: a plan has the places of events, and a copy gets these; what others wrote is none."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    fill(settings, 1)
    for number in range(3):
        redis_client.xadd(Keys(settings.namespace).log(0), {"x": number})
    fill(settings, 2)
    with Stores(settings) as stores:
        wanted = ReplayRequest(provider="rec", into="plan")
        plan = plan_replay(stores, wanted, describe=described_here)
        heads = sum(head.n for head in stores.history.log.heads())
    assert plan.total == heads
    filled = replay(settings)
    assert (filled.applied, filled.parked) == (heads, 0)


def test_a_replay_ends_where_it_is_told(redis_client, make_settings):
    """G8: an event's id is a moment; with it the replay begins or ends, whatever came after."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    fill(settings, 10)
    with Stores(settings) as stores:
        events = stores.history.read(0, count=100).events
    fourth = next(e for e in events if getattr(e.envelope.event, "user", "") == "a 4")
    replay(settings, "until", until=fourth.envelope.id)
    assert texts(home(settings, "until")) == [f"a {number}" for number in range(5)]
    replay(settings, "place", since="p00:3", until=f"p00:{fourth.position.n}")
    assert texts(home(settings, "place")) == ["a 1", "a 2", "a 3", "a 4"]
    with pytest.raises(ConfigError, match="not a time, position or event"):
        begun(settings, "wrong", until="yesterday")


def test_a_running_worker_joins(redis_client, make_settings):
    """G8: workers that serve the provider fill its copies too, and go on with what is live."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 20)
    with thread_worker(settings):
        begun(settings)
        wait_until(lambda: len(texts(home(settings, "copy"))) == 4 * 21, "the worker filled it")
        with MemoryBus.connect(settings) as bus:
            bus.session("late", warm=False).turn_completed("after the plan", "")
            assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
        leases = f"{settings.namespace}:*:lease:copy"
        wait_until(lambda: not list(redis_client.scan_iter(leases)), "a finished copy rests")
    assert "after the plan" in texts(home(settings))
    assert "after the plan" not in texts(home(settings, "copy"))


def test_the_command_plans_first(redis_client, make_settings, spawn):
    """Without --yes nothing happens; with it progress comes as lines, the result last."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 5)
    words = ("replay", "--provider", "rec", "--into", "copy")
    child = cli(spawn, settings, *words)
    assert child.wait() == 0, child.output()
    assert "nothing was done" in child.output()
    assert "28 places of the history" in child.output()
    with Stores(settings) as stores:
        assert stores.instances.all() == {}
    child = cli(spawn, settings, *words, "--yes")
    assert child.wait() == 0, child.output()
    *steps, last = lines(child)
    assert steps[-1]["done"] == steps[-1]["total"] == 4 * 7 + 1, "with the record of the act"
    assert {"rate", "eta", "parked"} <= steps[0].keys()
    assert (last["finished"], last["done"], last["into"]) == (True, 4 * 7 + 1, "copy")
    child = cli(spawn, settings, "replay", "ls", "--json")
    assert child.wait() == 0
    assert '"state": "done"' in child.output()


def test_a_copy_is_dropped_whole(redis_client, make_settings, spawn, tmp_path):
    """G8: --cancel leaves nothing of a copy: no key, no file; what its links point to stays."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, 5)
    replay(settings)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (home(settings, "copy") / "link").symlink_to(outside)
    child = cli(spawn, settings, "replay", "--cancel", "copy")
    assert child.wait() == 0
    assert home(settings, "copy").exists()
    child = cli(spawn, settings, "replay", "--cancel", "copy", "--yes")
    assert child.wait(30) == 0, child.output()
    assert "dropped copy" in child.output()
    assert not home(settings, "copy").exists()
    assert (outside / "kept").exists()
    added = {key for key in redis_client.scan_iter() if b"copy" in key}
    assert added == set()
    with Stores(settings) as stores:
        assert stores.instances.all() == {}
        assert "copy" not in stores.homes.all()
        assert "copy" not in stores.roster.instances()
    child = cli(spawn, settings, "replay", "--cancel", "copy", "--yes")
    assert child.wait() == 2


def test_a_copy_lives_where_its_provider_does(redis_client, make_settings, spawn):
    """G3: a local provider's copy has its home; who is elsewhere says so, and fills nothing."""
    settings = make_settings(
        providers=("rec",), provider={"rec": {"kind": "helpers.providers.local:Local"}}
    )
    fill(settings, 5)
    away = Home("f" * 32, "another-host", "/srv/memorybus", "7")
    Homes(redis_client, Keys(settings.namespace)).move("rec", away)
    child = command(spawn, settings)
    assert child.wait() == 1, child.output()
    assert "another-host" in child.output()
    assert not home(settings, "copy").exists()
    assert Homes(redis_client, Keys(settings.namespace)).all()["copy"] == away
