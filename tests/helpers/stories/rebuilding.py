"""Rebuilds for tests: commands, and what is needed to freeze one or to do its steps by hand."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import redis
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, Instances, Live, live_name
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus.testing import CrashPoint, FakeClock, no_crash
from memorybus_console.operations.rebuild import rebuild
from memorybus_console.operations.rebuild.rebuild import Rebuilder, plan_drop
from memorybus_console.operations.stores import Stores

from helpers.processes.commands import run_command
from helpers.processes.processes import Child, Spawn
from helpers.stories.scenario import NAME, environ, wait_applied

NEXT = f"{NAME}@1"
AFTER = f"{NAME}@2"
Act = Callable[[], object]


def command(spawn: Spawn, settings: Settings, *words: str, **changed: Any) -> Child:
    """Start a command of the command line."""
    told = msgspec.structs.replace(settings, **changed)
    return spawn("-m", "memorybus", *words, "--json", env=environ(told))


def ran(spawn: Spawn, settings: Settings, *words: str, code: int = 0) -> Any:
    """Run a command to its end, in this process; return its result."""
    told = environ(settings) | spawn.mark
    done = run_command(told, *words, "--json")
    return _result(done.returncode, done.output, code)


def result(child: Child, code: int = 0) -> Any:
    """Wait for a command's end; return its result, or all that it said if it fails."""
    return _result(child.wait(60), child.output(), code)


def _result(found: int, text: str, code: int) -> Any:
    assert found == code, text
    begins = min(at for at in (text.find("{"), text.find("["), len(text)) if at >= 0)
    return json.JSONDecoder().raw_decode(text, begins)[0] if code == 0 else text


def fill(settings: Settings, sessions: str = "abcd", count: int = 20) -> None:
    """Publish turns and writes of several sessions."""
    with MemoryBus.connect(settings) as bus:
        for name in sessions:
            session = bus.session(name, warm=False)
            for number in range(count):
                session.turn_completed(f"{name} {number}", "ok", ordinal=number)
            session.memory_written("add", f"{name} remembers", store="user")
        assert bus.flush("logged", 25)


def live(client: redis.Redis, settings: Settings) -> str:
    """Return the instance that serves."""
    return live_name(NAME, Instances(client, Keys(settings.namespace)).live())


def paused_names(client: redis.Redis, settings: Settings) -> set[str]:
    """Return the instances that are paused."""
    return set(Instances(client, Keys(settings.namespace)).pauses())


def settled(client: redis.Redis, settings: Settings, name: str) -> None:
    """Wait until an instance has everything."""
    wait_applied(client, settings, name, 30)


@contextmanager
def talking(settings: Settings, session: str = "busy", pause: float = 0.01) -> Iterator[list[str]]:
    """Publish turns of a session all the time; the list holds what was accepted."""
    said: list[str] = []
    stop = threading.Event()

    def talk() -> None:
        with MemoryBus.connect(settings) as bus:
            speaker = bus.session(session, warm=False)
            while not stop.wait(pause):
                text = f"{session} says {len(said)}"
                speaker.turn_completed(text, "ok", ordinal=len(said))
                said.append(text)
            assert bus.flush("logged", 25)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join(40)


def damage(where: Path, statement: str) -> None:
    """Change a recorder's state behind its back."""
    with closing(sqlite3.connect(where / "effects.db", isolation_level=None)) as db:
        db.execute("pragma busy_timeout = 5000")
        db.execute(statement)


def entries(keys: Keys) -> list[str]:
    """Return the keys of the lock: the one others see, then the fences."""
    hashes = (keys.instances, keys.live, keys.pauses)
    return [keys.rebuilding(NAME), *(keys.fence(one, NAME) for one in hashes)]


def times_out(settings: Settings) -> None:
    """Let the lock of whoever works expire."""
    client = connect_redis(settings)
    for key in entries(Keys(settings.namespace)):
        client.delete(key)
    client.close()


@contextmanager
def working(settings: Settings, what: str, crash: CrashPoint = no_crash) -> Iterator[Rebuilder]:
    """Give one that has the lock, as a command does, and waits for nothing."""
    client = connect_redis(settings)
    with (
        RebuildLock(client, Keys(settings.namespace), NAME, what, "ann") as lock,
        Stores(settings, lock) as stores,
    ):
        yield Rebuilder(stores, lambda _: 0, lock, what, lambda *_: None, FakeClock(), crash)
    client.close()


def frozen(settings: Settings, meanwhile: Act) -> CrashPoint:
    """Return a point just before the swap at which a command stands still, while others work."""

    def pass_by(name: str) -> None:
        if name == "rebuild.met":
            times_out(settings)
            meanwhile()

    return pass_by


def swap(settings: Settings, to: str, what: str, crash: CrashPoint) -> None:
    """Let an instance serve, as `memorybus rebuild` and `--rollback` do."""
    with working(settings, what, crash) as work:
        _make(work.stores, to)
        work.swap(to, NAME, "ann", "", check=False, alike=False)


def serves(settings: Settings, to: str) -> None:
    """Let an instance serve from now on, as after a command that had the lock."""
    with working(settings, "rebuild") as work:
        _make(work.stores, to)
        known = work.stores.instances.live().get(NAME)
        now = Live(to, known.instance if known else NAME)
        assert work.stores.instances.swap(NAME, known, now)


def _make(stores: Stores, name: str) -> None:
    if name != NAME and stores.instances.get(name) is None:
        stores.add_instance(Instance(name=name, provider=NAME, purpose="rebuild"))


def drop(settings: Settings) -> None:
    """Drop what does not serve, as `memorybus rebuild --drop` does."""
    with working(settings, "drop") as work:
        rebuild.drop_generations(work, plan_drop(work.stores, NAME), "ann", FakeClock())


def acquired(client: redis.Redis, settings: Settings, who: str, name: str = NAME) -> int:
    """Take a lane of an instance; return the epoch."""
    call = scripts.acquire(Keys(settings.namespace), 0, name, who, 60_000)
    found = scripts.run(client, call)
    assert found is not None
    return found.epoch
