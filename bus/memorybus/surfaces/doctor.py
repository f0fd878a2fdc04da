"""``memorybus doctor``: what could be wrong, each with its remedy, and one real canary.

Every check is independent: one that fails does not hide the others.
"""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from memorybus.client import MemoryBus
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import MemoryBusError
from memorybus.ids import NewId, new_id
from memorybus.links import connect_redis, redacted
from memorybus.log import EventLog, Server
from memorybus.monitor import read_status
from memorybus.server_binary import OLDEST, dotted, find_server_binary, parse_version
from memorybus.settings import Settings

SCOPE = "doctor"
"""Agent and user of the canary; its memory is removed again."""

CANARY_TIMEOUT = 10.0
LOG_TIMEOUT = 3.0
RECALL_TIMEOUT = 3.0
LOOK_EVERY = 0.05
OLDEST_PYTHON = (3, 11)
HEADROOM = 256 << 20
"""Free bytes below which a disk is called nearly full."""

UP = "run: memorybus up"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one check found.

    Attributes:
        name: what was looked at.
        ok: whether it is as it should be.
        found: what was seen.
        fix: what to do if not; empty if ok.
    """

    name: str
    ok: bool
    found: str
    fix: str = ""


def examine(settings: Settings, clock: Clock = SYSTEM, make_id: NewId = new_id) -> Iterator[Check]:
    """Run every check, in order, giving each result as it is known."""
    yield python(sys.version_info[:3])
    yield _guarded("server binary", UP, lambda: binary(settings))
    yield spool(settings)
    log = EventLog(connect_redis(settings), settings)
    yield from _redis(log, redacted(settings.redis_url))
    yield _guarded("worker", UP, lambda: worker(settings))
    yield _guarded("canary", UP, lambda: canary(settings, clock, make_id()))


def _guarded(name: str, fix: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except MemoryBusError as error:
        return Check(name=name, ok=False, found=str(error), fix=fix)


def python(version: tuple[int, ...]) -> Check:
    """Check the interpreter's version."""
    shown = ".".join(map(str, version))
    return Check(
        name="python",
        ok=version[:2] >= OLDEST_PYTHON,
        found=f"{shown} ({platform.python_implementation()})",
        fix="" if version[:2] >= OLDEST_PYTHON else "install Python 3.11 or later",
    )


def binary(settings: Settings) -> Check:
    """Check that the embedded server could be started, unless a URL says it is not needed."""
    if settings.url:
        return Check(name="server binary", ok=True, found="not needed: a url is configured")
    found = find_server_binary()
    return Check(name="server binary", ok=True, found=f"{found.path} ({dotted(found.version)})")


def spool(settings: Settings) -> Check:
    """Check that the spool's directory can be written and has room."""
    place = settings.spool_dir
    try:
        place.mkdir(parents=True, exist_ok=True)
        _try_write(place)
        free = shutil.disk_usage(place).free
    except OSError as error:
        fix = f"make {place} writable, or choose another data_dir"
        return Check(name="spool", ok=False, found=f"{place}: {error}", fix=fix)
    ok = free >= HEADROOM
    found = f"{place} is writable, {free >> 20} MiB free"
    return Check(name="spool", ok=ok, found=found, fix="" if ok else f"make room on {place}")


def _try_write(place: Path) -> None:
    probe = place / ".doctor"
    probe.write_bytes(b"?")
    probe.unlink()


def _redis(log: EventLog, where: str) -> Iterator[Check]:
    try:
        server = log.server()
    except MemoryBusError as error:
        yield Check(name="redis", ok=False, found=str(error), fix=UP)
        return
    yield Check(name="redis", ok=True, found=f"answers at {where}")
    yield version(server)
    yield eviction(server)
    yield durability(server)
    if eviction(server).ok:
        yield _guarded("log", "set `partitions` as the message says", lambda: _birth(log))


def version(server: Server) -> Check:
    """Check that the server is new enough."""
    found = parse_version(f"v={server.version}")
    ok = found is not None and found >= OLDEST
    fix = "" if ok else f"use Redis {dotted(OLDEST)} or later, or Valkey"
    return Check(name="redis version", ok=ok, found=server.version, fix=fix)


def eviction(server: Server) -> Check:
    """Check that the server never evicts keys (G1)."""
    ok = server.policy == "noeviction"
    fix = "" if ok else "run: redis-cli config set maxmemory-policy noeviction"
    return Check(name="eviction policy", ok=ok, found=server.policy, fix=fix)


def durability(server: Server) -> Check:
    """Check that the server keeps an append-only file (G1)."""
    ok = server.durability.startswith("aof")
    fix = "" if ok else "run: redis-cli config set appendonly yes (and put it into redis.conf)"
    return Check(name="durability", ok=ok, found=server.durability, fix=fix)


def _birth(log: EventLog) -> Check:
    log.open()
    heads = log.heads()
    total = sum(head.n for head in heads)
    return Check(name="log", ok=True, found=f"{len(heads)} partitions, {total} events")


def worker(settings: Settings) -> Check:
    """Check that a live worker owns every lane."""
    status = read_status(settings)
    orphans = [one.name for one in status.providers if one.lanes_owned < one.lanes]
    if not status.workers:
        return Check(name="worker", ok=False, found="none is alive", fix=UP)
    if orphans:
        found = f"lanes without an owner: {', '.join(orphans)}"
        return Check(name="worker", ok=False, found=found, fix="run: memorybus worker")
    return Check(name="worker", ok=True, found=f"{len(status.workers)} alive, every lane is owned")


def canary(settings: Settings, clock: Clock, word: str) -> Check:
    """Write a unique word to the `SCOPE` stores, recall it, remove it again."""
    begun = clock.monotonic()
    with MemoryBus.connect(settings) as bus:
        session = bus.session(f"doctor:{word}", agent=SCOPE, user=SCOPE, warm=False)
        text = f"The canary of the doctor sings {word}."
        session.memory_written("add", text, store="user")
        try:
            logged = bus.flush("logged", timeout=LOG_TIMEOUT)
            found = logged and _sings(bus, word, clock)
        finally:
            session.memory_written("remove", store="user", old_text=word)
            session.ended("canary")
            bus.flush("logged", timeout=LOG_TIMEOUT if logged else 0)
    if not logged:
        return _silent("published, but Redis did not take it in time: it waits in the spool")
    if not found:
        return _silent(f"published and logged, not recalled within {CANARY_TIMEOUT:g} s")
    ms = (clock.monotonic() - begun) * 1000
    return Check(name="canary", ok=True, found=f"published, applied and recalled in {ms:.0f} ms")


def _sings(bus: MemoryBus, word: str, clock: Clock) -> bool:
    deadline = clock.monotonic() + CANARY_TIMEOUT
    while clock.monotonic() < deadline:
        if word in bus.recall(word, agent=SCOPE, user=SCOPE, timeout=RECALL_TIMEOUT).text:
            return True
        clock.sleep(LOOK_EVERY)
    return False


def _silent(found: str) -> Check:
    return Check(
        name="canary",
        ok=False,
        found=found,
        fix="see `memorybus status` for backlog, parked keys and dead letters",
    )
