"""Checks the log for the doctor: its Redis, keys, completeness, archive, memory and disk."""

from collections.abc import Generator, Iterator

from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.embedded.binary import OLDEST_VERSION, format_version, parse_version
from memorybus.errors import LogError, LogUnavailable, MemoryBusError
from memorybus.health import findings
from memorybus.health.finding import Check, Code
from memorybus.health.findings import ServerState, server_alarms
from memorybus.health.log_health import LogHealth, read_health
from memorybus.health.status import describe_archive
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.facts import Server
from memorybus.redis.known_faults import faults_of

_TOPICS: dict[str, tuple[Code, ...]] = {
    "continuity": ("data_loss", "foreign_entries"),
    "persistence": ("persistence", "read_only"),
    "memory": ("memory",),
    "archive": ("archive", "archive_ahead"),
    "disk": ("disk",),
}
"""The alarms of each check. Eviction and durability are checked separately: the log is opened after
them, and only if Redis evicts nothing."""


def check_redis(settings: Settings, hindrance: str) -> Generator[Check, None, Check | None]:
    """Check the Redis of the log, then the log in it.

    Args:
        settings: see `Settings`.
        hindrance: what to do first if Redis does not answer; "" for nothing.

    Returns:
        The failed check that prevents publishing and applying; None if nothing does.
    """
    log = EventLog(connect_redis(settings), settings)
    try:
        server = log.server()
    except LogUnavailable as error:
        fix = hindrance or error.remedy or "do as the message says"
        unreached = Check(name="redis", ok=False, found=error.problem, fix=fix)
        yield unreached
        return unreached
    yield Check(name="redis", ok=True, found=f"answers at {redacted(settings.redis_url)}")
    yield check_version(server)
    needed = check_eviction(server)
    yield needed
    yield check_durability(server)
    if needed.ok:
        needed = _check_opens(log)
        yield needed
    yield from check_log(settings)
    return None if needed.ok else needed


def check_version(server: Server) -> Check:
    """Check that the server is new enough, and name the known faults of its release."""
    found = parse_version(f"v={server.version}")
    name = f"{server.product} {server.version}"
    if found is None or found < OLDEST_VERSION:
        fix = f"use Redis {format_version(OLDEST_VERSION)} or later, or Valkey"
        return Check(name="redis version", ok=False, found=name, fix=fix)
    faults = list(faults_of(server))
    texts = "; ".join((name, *(f"{fault.text}: {fault.source}" for fault in faults)))
    fix = f"update to a {server.product} without these faults" if faults else ""
    return Check(name="redis version", ok=True, found=texts, fix=fix)


def check_eviction(server: Server) -> Check:
    """Check that the server never evicts keys (G1)."""
    return _check_server("eviction policy", "eviction_policy", server, server.policy)


def check_durability(server: Server) -> Check:
    """Check that the server keeps an append-only file (G1)."""
    return _check_server("durability", "no_append_only_file", server, server.durability)


def _check_server(name: str, code: Code, server: Server, well: str) -> Check:
    """Return the check of the alarms with a code; `well` is its finding if there is none."""
    state = ServerState(policy=server.policy, aof=server.has_aof)
    return Check.from_findings(
        name, [one for one in server_alarms(state) if one.code == code], well
    )


def _check_opens(log: EventLog) -> Check:
    """Check that the log can be opened, and that every key of its partitions is ours."""
    try:
        log.open()
        heads, foreign = log.heads(), log.foreign_keys()
    except (MemoryBusError, OSError) as error:
        return Check(name="log", ok=False, found=str(error), fix="do as the message says")
    if foreign:
        found = f"not ours: {', '.join(foreign)}; these partitions are stopped"
        fix = "rename or delete these keys, or set another `namespace`"
        return Check(name="log", ok=False, found=found, fix=fix)
    total = sum(head.n for head in heads)
    return Check(name="log", ok=True, found=f"{len(heads)} partitions, {total} events")


def check_log(settings: Settings) -> Iterator[Check]:
    """Check that the log is whole, and that Redis will be able to keep it (G1, G7, G10)."""
    try:
        health = read_health(settings)
    except LogError as error:
        fix = "see the checks of Redis above"
        yield Check(name="continuity", ok=False, found=str(error), fix=fix)
        return
    yield from build_checks(health)


def build_checks(health: LogHealth) -> Iterator[Check]:
    """Yield the checks of a health reading, in order: a critical alarm fails its check."""
    well = {
        "continuity": "no number is missing in the log",
        "persistence": "Redis can write what it is given",
        "memory": str(health.memory),
        "archive": describe_archive(health.archive),
    }
    if health.disk is not None:
        well["disk"] = str(health.disk)
    wrong = [*health.alarms, *findings.find_untrimmed(health.archive, health.alarms)]
    for name, found in well.items():
        yield Check.from_findings(name, [one for one in wrong if one.code in _TOPICS[name]], found)
