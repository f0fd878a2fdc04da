"""``memorybus doctor``: what could be wrong, each with its remedy, and one real canary.

Every check is independent: one that fails does not hide the others.
"""

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.embedded.binary import OLDEST, dotted, find_server_binary, parse_version
from memorybus.errors import AccessDenied, MemoryBusError
from memorybus.health.finding import Check
from memorybus.health.monitor import Status, read_status
from memorybus.health.providers import ProviderStatus
from memorybus.ids import NewId, new_id
from memorybus.log.stream import EventLog
from memorybus.operations.doctor import canary
from memorybus.operations.doctor.copies import copies
from memorybus.operations.doctor.dead_letters import dead_letters
from memorybus.operations.doctor.host import other_spools, privacy, spool
from memorybus.operations.doctor.log import check_log
from memorybus.operations.doctor.rebuilds import rebuilds
from memorybus.operations.doctor.recalls import recalls
from memorybus.operations.doctor.serving import backends, notes, paused
from memorybus.operations.providers.inventory import check_homes, instances
from memorybus.redis.connect import connect_redis
from memorybus.redis.facts import Server

MOVES_WITHIN = 3.0
"""Seconds in which a backlog has to become smaller to count as being worked on."""

LOOK_EVERY = 0.1
OLDEST_PYTHON = (3, 11)
UP = "run: memorybus up"
NEEDED = ("redis", "eviction policy", "log")
"""Checks without which nothing can be published or applied."""


def examine(settings: Settings, clock: Clock = SYSTEM, make_id: NewId = new_id) -> Iterator[Check]:
    """Run every check, in order, giving each result as it is known."""
    yield python(sys.version_info[:3])
    yield _guarded("server binary", UP, lambda: binary(settings))
    own = spool(settings)
    yield own
    yield _guarded("other spools", own.fix or UP, lambda: other_spools(settings))
    yield _guarded("privacy", own.fix or UP, lambda: privacy(settings))
    obstacle: Check | None = None
    for check in _redis(settings, start_advice(settings, own)):
        yield check
        if not check.ok and check.name in NEEDED:
            obstacle = obstacle or check
    if obstacle is not None:
        yield _not_tried("worker", obstacle)
        yield _not_tried("canary", obstacle)
        return
    yield from _serving(settings, clock)
    yield _guarded("canary", own.fix or UP, lambda: sung(canary.fly(settings, clock, make_id())))


def start_advice(settings: Settings, own: Check) -> str:
    """Return what to do if Redis does not answer: an unwritable disk stops the embedded one too."""
    if settings.url:
        return f"start the Redis at {redacted(settings.url)}, or tell memorybus another url"
    return own.fix or UP


def _not_tried(name: str, obstacle: Check) -> Check:
    found = f"not tried: see {obstacle.name}"
    return Check(name=name, ok=False, found=found, fix=obstacle.fix)


def _guarded(name: str, fix: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except (MemoryBusError, OSError) as error:
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


def _redis(settings: Settings, start: str) -> Iterator[Check]:
    log = EventLog(connect_redis(settings), settings)
    try:
        server = log.server()
    except MemoryBusError as error:
        fix = "do as the message says" if isinstance(error, AccessDenied) else start
        yield Check(name="redis", ok=False, found=str(error), fix=fix)
        return
    yield Check(name="redis", ok=True, found=f"answers at {redacted(settings.redis_url)}")
    yield version(server)
    yield eviction(server)
    yield durability(server)
    if eviction(server).ok:
        yield _guarded("log", "do as the message says", lambda: _birth(log))
    yield from check_log(settings)


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
    foreign = log.foreign()
    if foreign:
        found = f"not ours: {', '.join(foreign)}; these partitions stand still"
        fix = "rename or delete these keys, or set another `namespace`"
        return Check(name="log", ok=False, found=found, fix=fix)
    return Check(name="log", ok=True, found=f"{len(heads)} partitions, {total} events")


def _serving(settings: Settings, clock: Clock) -> Iterator[Check]:
    try:
        status = read_status(settings)
    except MemoryBusError as error:
        yield Check(name="worker", ok=False, found=str(error), fix=UP)
        return
    yield worker(status)
    yield _guarded("homes", UP, lambda: check_homes(instances(settings)))
    yield _guarded("notes", UP, lambda: notes(instances(settings)))
    yield dead_letters(status)
    yield backends(status)
    yield paused(status)
    yield _guarded("copies", UP, lambda: copies(settings))
    yield _guarded("rebuilds", UP, lambda: rebuilds(settings))
    if status.workers:
        yield providers(status, settings.providers)
        yield _guarded("backlog", UP, lambda: backlog(settings, status, clock))
        yield recalls(status.jobs, clock.now_ms())


def worker(status: Status) -> Check:
    """Check that a worker is alive."""
    count = len(status.workers)
    if not count:
        return Check(name="worker", ok=False, found="none is alive", fix=UP)
    return Check(name="worker", ok=True, found=f"{count} alive")


def providers(status: Status, configured: Sequence[str]) -> Check:
    """Check that every provider is served, all its lanes."""
    lacking = [one for one in status.providers if one.lanes_owned < one.lanes]
    # What fails or is paused is served, and told by another check.
    lacking = [one for one in lacking if not (one.failing or one.paused)]
    unserved = [one.name for one in lacking if one.name in configured and not one.lanes_owned]
    if unserved:
        listed = ", ".join(unserved)
        return Check(
            name="providers",
            ok=False,
            found=f"configured, but no worker serves: {listed}",
            fix=f"see that `providers` names what you mean, and restart the worker, or run: "
            f"memorybus worker --providers {','.join(unserved)}",
        )
    if lacking:
        found = f"lanes without an owner: {', '.join(one.name for one in lacking)}"
        return Check(name="providers", ok=False, found=found, fix="run: memorybus worker")
    owned = [one.live or one.name for one in status.providers if one.lanes_owned == one.lanes]
    found = f"every lane of {', '.join(owned)} is owned" if owned else "none has lanes now"
    return Check(name="providers", ok=True, found=found)


def backlog(settings: Settings, status: Status, clock: Clock) -> Check:
    """Check that whoever is behind catches up; waits a little only if somebody is."""
    behind = [one for one in status.providers if one.backlog and (one.lanes_owned or one.failing)]
    behind = [one for one in behind if not one.paused]
    stuck = behind
    deadline = clock.monotonic() + MOVES_WITHIN
    while stuck and clock.monotonic() < deadline:
        clock.sleep(LOOK_EVERY)
        stuck = unmoved(stuck, read_status(settings).providers)
    if stuck:
        listed = ", ".join(f"{one.name} ({one.backlog} events)" for one in stuck)
        fix = "read the worker's log: it says what its provider waits for"
        return Check(name="backlog", ok=False, found=f"does not move: {listed}", fix=fix)
    return Check(name="backlog", ok=True, found="being worked on" if behind else "none")


def unmoved(
    before: Iterable[ProviderStatus], after: Iterable[ProviderStatus]
) -> list[ProviderStatus]:
    """Return those of `before` that have applied nothing since and are as far behind."""
    now = {one.name: one for one in after}
    return [
        one
        for one in before
        if one.name in now
        and now[one.name].applied <= one.applied
        and now[one.name].backlog >= one.backlog
    ]


def sung(flight: canary.Flight) -> Check:
    """Check how far the canary came."""
    name = "canary"
    if flight.recalled:
        found = f"published, applied and recalled in {flight.seconds * 1000:.0f} ms"
        return Check(name=name, ok=True, found=found)
    if not flight.logged:
        found = "published, but Redis did not take it in time: it waits in the spool"
        return Check(name=name, ok=False, found=found, fix="run: memorybus status")
    return Check(
        name=name,
        ok=False,
        found=f"published and logged, not recalled within {canary.SINGS_WITHIN:g} s",
        fix="see the backlog with `memorybus status`, dead letters with `memorybus dlq ls`",
    )
