"""What somebody paused stays so, whatever commands do with it, until somebody resumes it."""

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.rebuilding import NEXT, damage, fill, live, paused_names, ran, settled, working
from helpers.stories.replaying import begun, cli
from helpers.stories.scenario import NAME, home, recorded, thread_worker, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.findings import find_paused as pause_findings
from memorybus.health.monitor import read_status
from memorybus.registry.instances import Instance, InstancePause, Live, command_pause, over_lasting
from memorybus_console.operations.copies.generations import is_dropped
from memorybus_console.operations.stores import Stores

QUOTA = ("provider", "pause", NAME, "--reason", "quota")


@pytest.fixture(name="settings")
def _settings(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    return make_settings(**recorded("Transactional"))


def paused(settings: Settings) -> dict[str, str]:
    """Return why instances stand still."""
    with Stores(settings) as stores:
        return {name: pause.reason for name, pause in stores.instances.pauses().items()}


def at_rest(settings: Settings, name: str = NAME) -> bool:
    """Say whether nobody owns a lane of an instance."""
    with Stores(settings) as stores:
        return not any(lane.owned for lane in stores.lanes.states(name))


@pytest.mark.timeout(100)
def test_a_verification_leaves_a_pause(redis_client, settings, spawn):
    """G8: who is paused is compared, and is paused afterwards; if it lacks something that is said.

    It is said at once, with the pause and its end, and nothing is made: nothing would move.
    """
    fill(settings, "ab", 3)
    worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    damage(home(settings), "delete from effects where text = 'b remembers'")
    ran(spawn, settings, *QUOTA)
    assert "differ" in ran(spawn, settings, "verify", NAME, code=1)
    assert paused(settings) == {NAME: "quota"}
    wait_until(lambda: at_rest(settings), "its lanes are given up")
    fill(settings, "c", 1)
    for words in (("verify", NAME), ("rebuild", NAME, "--yes")):
        said = ran(spawn, settings, *words, code=1)
        assert f"{NAME} is paused (quota)" in said
        assert f"memorybus provider resume {NAME}" in said
    assert paused(settings) == {NAME: "quota"}
    with Stores(settings) as stores:
        assert NEXT not in stores.instances.all(), "a copy is filled for a swap that cannot be"


@pytest.mark.timeout(100)
def test_a_pause_goes_over_to_who_serves(redis_client, settings, spawn):
    """G8: a provider's name means what serves it: a swap hands its pause on, resume ends that.

    The one that is kept for a rollback stands still for good: nobody resumes it.
    """
    fill(settings, "ab", 3)
    worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    ran(spawn, settings, *QUOTA)
    wait_until(lambda: at_rest(settings, NAME), "its lanes are given up")
    ran(spawn, settings, "rebuild", NAME, "--yes")
    assert paused(settings)[NEXT] == "quota"
    again = ran(spawn, settings, *QUOTA)
    assert (again["name"], again["changed"], again["serves"]) == (NEXT, False, NAME)
    wait_until(lambda: at_rest(settings, NEXT), "its lanes are given up")
    fill(settings, "c", 1)
    assert not [text for text in texts(home(settings, NEXT)) if text.startswith("c")]
    assert ran(spawn, settings, "provider", "resume", NAME)["name"] == NEXT
    wait_applied(redis_client, settings, NEXT)
    assert paused_names(redis_client, settings) == {NAME}
    ran(spawn, settings, *QUOTA)
    wait_until(lambda: at_rest(settings, NEXT), "its lanes are given up")
    ran(spawn, settings, "rebuild", "--rollback", NAME, "--yes")
    assert live(redis_client, settings) == NAME
    assert paused(settings)[NAME] == "quota"
    assert "kept" in ran(spawn, settings, "provider", "resume", NEXT, code=2)
    assert paused_names(redis_client, settings) == {NAME, NEXT}


def test_a_pause_goes_over_though_a_command_was_killed(settings):
    """G8: also where both stood still for the swap, and the command was killed behind it."""
    command, pause = (
        command_pause("rebuild", NAME, NEXT, "ann", 1),
        InstancePause("quota", "ben", 2),
    )
    with working(settings, "rebuild") as work:
        instances = work.stores.instances
        work.stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        instances.swap(NAME, None, Live(NEXT, NAME, leaving=NAME))
        instances.set_pause(NAME, over_lasting(pause, command))
        instances.set_pause(NEXT, command)
        work.finish_killed_swap(NAME, "ann")
        pauses = instances.pauses()
    assert pauses[NEXT] == pause
    assert pauses[NAME].state == "kept"


def test_a_dropped_one_is_not_woken(settings, spawn):
    """G8: no command lets the first generation go on when it was dropped."""
    with Stores(settings) as stores:
        stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        stores.instances.swap(NAME, None, Live(NEXT))
        stores.instances.set_pause(NAME, InstancePause("dropped: another serves", state="dropped"))
    for words in (QUOTA, ("provider", "resume", NAME)):
        assert ran(spawn, settings, *words)["name"] == NEXT
    assert paused(settings) == {NAME: "dropped: another serves"}


@pytest.mark.parametrize("reason", ["kept for memorybus rebuild --rollback rec", "removed: it"])
def test_the_words_of_a_reason_are_no_state(settings, spawn, reason):
    """G8: a person's pause is one whatever its reason says: it is named, and it can be resumed."""
    assert ran(spawn, settings, *QUOTA[:-1], reason)["changed"]
    (one,) = read_status(settings).providers
    assert (one.paused, one.kept) == (reason, False)
    (finding,) = pause_findings(read_status(settings))
    assert reason in finding.text
    with Stores(settings) as stores:
        assert not is_dropped(NAME, stores.instances.read_view())
    assert ran(spawn, settings, "provider", "resume", NAME)["changed"]
    assert paused(settings) == {}


def test_a_pause_meanwhile_counts(settings, spawn):
    """G8: who is paused during a command's pause is so when that is gone, even if killed.

    A worker ends a command's pause by its mark, never what somebody paused, whatever he wrote.
    """
    command = command_pause("rebuild", NAME, NEXT, "ann", 1)
    with Stores(settings) as stores:
        stores.instances.set_pause(NAME, command)
    assert ran(spawn, settings, *QUOTA[:-1], command.reason)["changed"]
    with Stores(settings) as stores, thread_worker(settings):
        wait_until(
            lambda: not stores.instances.pauses()[NAME].candidate, "the command's pause is gone"
        )
        pause = stores.instances.pauses()[NAME]
        assert pause.reason == command.reason
        assert over_lasting(pause, command).under == pause
    assert not ran(spawn, settings, "provider", "resume", NAME)["paused"]
    assert paused(settings) == {}


def test_a_resume_leaves_a_command_its_pause(settings, spawn):
    """G8: who is resumed while a living command pauses it goes on when that ends, not before.

    What a command paused that is gone goes on at once.
    """
    command = command_pause("rebuild", NAME, NEXT, "ann", 1)
    with working(settings, "rebuild") as work:
        work.stores.instances.set_pause(NAME, command)
        for changed in (True, False):
            if changed:
                ran(spawn, settings, *QUOTA)
            assert ran(spawn, settings, "provider", "resume", NAME)["changed"] is changed
            assert work.stores.instances.pauses() == {NAME: command}
    assert ran(spawn, settings, "provider", "resume", NAME)["changed"]
    assert paused(settings) == {}


def test_a_paused_copy_is_not_waited_for(settings, spawn):
    """A replay into a copy that is paused says so and ends; resumed, the same command goes on."""
    fill(settings, "a", 3)
    begun(settings, "cp")
    ran(spawn, settings, "provider", "pause", "cp", "--reason", "lunch")
    words = ("replay", "--provider", NAME, "--into", "cp", "--yes")
    said = ran(spawn, settings, *words, code=1)
    assert "cp is paused (lunch)" in said
    assert "memorybus provider resume cp" in said
    ran(spawn, settings, "provider", "resume", "cp")
    assert cli(spawn, settings, *words).wait(30) == 0
    assert len(texts(home(settings, "cp"))) == 4


@pytest.mark.timeout(100)
@pytest.mark.parametrize("back", [False, True])
def test_who_takes_over_from_a_paused_one_has_all_there_is(
    redis_client, make_settings, spawn, *, back
):
    """G8: with nobody at work to be compared with, it comes to the end before it serves."""
    settings = make_settings(**recorded("Transactional"), batch=4)
    fill(settings, "a", 2)
    worker(spawn, settings, jobs=1)
    if back:
        ran(spawn, settings, "rebuild", NAME, "--yes")
    now, other = (NEXT, NAME) if back else (NAME, NEXT)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("slow", user="z", warm=False)
        for number in range(30):
            session.turn_completed(f"!takes=0.1 {number}", "ok", ordinal=number)
        assert bus.flush("logged", 25)
    wait_applied(redis_client, settings, now, 60)
    ran(spawn, settings, *QUOTA)
    wait_until(lambda: at_rest(settings, now), "its lanes are given up")
    words = ("--rollback", NAME) if back else (NAME, "--no-verify")
    ran(spawn, settings, "rebuild", *words, "--yes")
    assert live(redis_client, settings) == other
    assert sorted(texts(home(settings, other))) == sorted(texts(home(settings, now)))
