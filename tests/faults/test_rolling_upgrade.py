"""Old and new workers and agents on one log, each killed and ended in turn (G3, G4)."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
import redis
from helpers.faults.scale import QUICK
from helpers.processes.beside import Release, present_worker, unpacked
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.recording import Effect, effects
from helpers.stories.samples import envelope
from helpers.stories.scenario import NAME, environ, home, recorded, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import TurnCompleted
from memorybus.log.stream import EventLog
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Encoder

pytestmark = [pytest.mark.fault, pytest.mark.timeout(400)]

SESSIONS = 6
PROGRESS = 30
"""Effects to be seen after each change before the next one."""

MAY_DOUBLE = {"Transactional": 0, "Keyed": 0, "Lookup": 0, "Blind": 2}
"""Two workers are killed; a blind provider may repeat one event for each."""


@pytest.fixture(scope="module", name="old")
def _old(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Return the release before this work."""
    return unpacked(tmp_path_factory.mktemp("old"))


class Turns:
    """An agent of the present code that publishes numbered turns until it is told to end.

    Attributes:
        count: how many turns each session has.
    """

    def __init__(self, settings: Settings) -> None:
        self.count = 0
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with MemoryBus.connect(self._settings) as bus:
            while not self._stop.is_set():
                for name in range(SESSIONS):
                    text = f"s{name} {self.count:04d}"
                    bus.session(f"s{name}", warm=False).turn_completed(
                        text, "ok", ordinal=self.count
                    )
                assert bus.flush("logged", 60)  # as fast as Redis takes them, no faster
                self.count += 1

    def end(self) -> None:
        """Stop publishing."""
        self._stop.set()
        self._thread.join(90)
        assert not self._thread.is_alive()


@contextmanager
def flowing(settings: Settings) -> Iterator[Turns]:
    """Let turns flow while the block runs."""
    turns = Turns(settings)
    try:
        yield turns
    finally:
        turns.end()


def goes_on(settings: Settings) -> None:
    """Wait until more effects are seen: whoever is there works."""
    seen = len(effects(home(settings)))
    wait_until(lambda: len(effects(home(settings))) >= seen + PROGRESS, "effects go on", 60)


def doubled(found: list[Effect]) -> int:
    """Count the effects that happened more than once."""
    return sum(count - 1 for count in Counter(effect.event_id for effect in found).values())


def in_order(found: list[Effect], session: str) -> list[str]:
    """Return a session's texts in the order of their first effects."""
    return list(dict.fromkeys(e.text for e in found if e.text.startswith(f"{session} ")))


def upgrade(spawn: Spawn, settings: Settings, old: Release) -> None:
    """Go from old to new workers and back again: each is killed once and told to end once."""
    first = old.worker(spawn, settings)
    goes_on(settings)
    second = present_worker(spawn, settings)
    _kill(first, settings)
    first = old.worker(spawn, settings)
    _kill(second, settings)
    second = present_worker(spawn, settings)
    _end(first, settings)
    first = old.worker(spawn, settings)
    _end(second, settings)
    present_worker(spawn, settings)
    _end(first, settings)


def _kill(child: Child, settings: Settings) -> None:
    """Kill a worker while it works; the other one goes on."""
    assert child.alive, child.output()
    child.send(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    goes_on(settings)


def _end(child: Child, settings: Settings) -> None:
    """Tell a worker to end; the other one goes on."""
    assert child.terminate() == 0, child.output()
    goes_on(settings)


@pytest.mark.parametrize("kind", ["Lookup"] if QUICK else list(MAY_DOUBLE))
def test_old_and_new_workers_share_one_log(redis_client, make_settings, spawn, old, kind):
    """G3, G4: whoever takes over from whom, nothing is lost or twice, and order is kept."""
    # A worker that lost its lanes because the machine stood still could double an event, too.
    settings = make_settings(lease=3.0, call_timeout=0.3, batch=16, **recorded(kind))
    words = ("--session", "old", "--count", 400, "--flush-every", 2, "--flush", 60)
    agent = old.agent(spawn, settings, *words)
    with flowing(settings) as turns:
        upgrade(spawn, settings, old)
    agent.wait_output("flushed", 90)
    wait_applied(redis_client, settings)
    _check(settings, turns, MAY_DOUBLE[kind])
    assert in_order(effects(home(settings)), "turn") == numbered("turn", 400, digits=5)


@pytest.mark.parametrize("crash", ["", "lane.after_commit:2"])
def test_an_old_worker_takes_over_a_lane_with_a_done_set(
    redis_client, make_settings, spawn, old, crash
):
    """G3, G4: what was done out of order is repeated by id only, and then done in order once."""
    side = {"providers": (NAME,), "provider": {NAME: {"kind": "rolling_providers:SideKeyed"}}}
    settings = make_settings(
        lease=0.6, call_timeout=0.3, batch=64, partitions=1, attempts=10_000, **side
    )
    gate = settings.data_dir / "gate"
    gate.touch()
    publish(settings, 40, first_of_s0=f"!transient={gate} s0 waits")
    present = present_worker(spawn, settings)
    wait_until(lambda: len(effects(home(settings))) == 40 * (SESSIONS - 1), "all but s0 is done")
    wait_until(lambda: done_set(redis_client, settings), "the lane has a done-set")
    present.kill()
    gate.unlink()
    before = old.worker(spawn, settings, crash=crash)
    if crash:
        assert before.wait() == -signal.SIGKILL
    else:
        wait_applied(redis_client, settings)
        assert before.terminate() == 0
    assert done_set(redis_client, settings), "the older release leaves it as it was"
    publish(settings, 20, first=40)
    present_worker(spawn, settings)
    wait_applied(redis_client, settings)
    found = effects(home(settings))
    assert doubled(found) == 0
    assert in_order(found, "s0") == numbered("s0", 60)[1:]
    assert all(in_order(found, f"s{n}") == numbered(f"s{n}", 60) for n in range(1, SESSIONS))


def publish(settings: Settings, count: int, first: int = 0, first_of_s0: str = "") -> None:
    """Publish numbered turns of every session; the very first of `s0` may say something else."""
    with MemoryBus.connect(settings) as bus:
        for number in range(first, first + count):
            for name in range(SESSIONS):
                text = first_of_s0 if first_of_s0 and not number and not name else ""
                session = bus.session(f"s{name}", warm=False)
                session.turn_completed(text or f"s{name} {number:04d}", "ok", ordinal=number)
        assert bus.flush("logged", 60)


def numbered(session: str, count: int, digits: int = 4) -> list[str]:
    """Return the texts of a session's turns."""
    return [f"{session} {number:0{digits}d}" for number in range(count)]


def done_set(client: redis.Redis, settings: Settings) -> bytes | None:
    """Return what the lane has done above its checkpoint."""
    found: bytes | None = client.hget(Keys(settings.namespace).lane(0, NAME), "done")
    return found


def test_an_old_worker_takes_events_that_were_sent_again(redis_client, make_settings, spawn, old):
    """G3, G6: what Redis may have had before is marked so, and an older release reads it."""
    settings = make_settings(partitions=1, **recorded("Keyed"))
    EventLog(redis_client, settings).open()
    for number, text in enumerate(("first", "second"), 1):
        sent_again(redis_client, settings, number, text)
    old.worker(spawn, settings)
    wait_applied(redis_client, settings)
    assert [effect.text for effect in effects(home(settings))] == ["first", "second"]


def sent_again(client: redis.Redis, settings: Settings, sequence: int, text: str) -> None:
    """Append a turn as a producer does that may have sent it before."""
    event = TurnCompleted(user=text, assistant="ok")
    body = Encoder(1 << 20).envelope(
        msgspec.structs.replace(envelope(event), id=f"{sequence:032x}")
    )
    outgoing = scripts.OutgoingEvent(sequence, f"{sequence:032x}".encode(), b"d", body)
    keys = Keys(settings.namespace)
    call = scripts.append(
        keys, 0, "p", 0, [outgoing], window_ms=60_000, max_ids=100, possibly_delivered=sequence
    )
    assert scripts.run(client, call) == scripts.Appended([])


ASKS = """
import threading
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import load
bus = MemoryBus.connect(load())
session = bus.session("asker", warm=False)
session.queue_prefetch("ladder")
tries = (threading.Event().wait(0.02) or session.prefetch("ladder") for _ in range(1_500))
print("answer:", next(filter(None, tries), "none"), flush=True)
bus.close()
"""


@pytest.mark.parametrize("asker", ["old", "present"])
def test_old_and_new_answer_each_other(redis_client, make_settings, spawn, old, asker):
    """G9: an agent of one release gets its recall from a worker of the other."""
    settings = make_settings(recall_timeout=20.0, prefetch_deadline=5.0, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        bus.session("s0", warm=False).turn_completed("the ladder stands behind the shed", "ok")
        assert bus.flush("logged", 60)
    answers = present_worker if asker == "old" else old.worker
    answers(spawn, settings, jobs=1)
    wait_applied(redis_client, settings)
    env = old.environ(settings) if asker == "old" else environ(settings)
    child = spawn("-c", ASKS, env=env)
    assert child.wait(90) == 0, child.output()
    assert "behind the shed" in child.output()


def _check(settings: Settings, turns: Turns, may_double: int) -> None:
    found = effects(home(settings))
    assert turns.count > PROGRESS // SESSIONS
    for name in range(SESSIONS):
        assert in_order(found, f"s{name}") == numbered(f"s{name}", turns.count)
    assert doubled(found) <= may_double
