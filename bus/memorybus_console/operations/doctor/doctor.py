"""``memorybus doctor``: this host, Redis, all findings by topic, the instances, and a canary.

The findings are those of `memorybus check`: nothing is judged twice. The checks are independent:
one that fails does not hide the others.
"""

import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from memorybus import private
from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.embedded.binary import (
    OLDEST_VERSION,
    find_server_binary,
    format_version,
    parse_version,
)
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.health.finding import Check, Code
from memorybus.health.findings import (
    START_REMEDY,
    ServerState,
    findings_of,
    refuses_writes,
    server_alarms,
)
from memorybus.health.monitor import read_status
from memorybus.health.status import Status, describe_archive
from memorybus.ids import NewId, new_id
from memorybus.log.stream import EventLog
from memorybus.outbox.files import inspect_spool
from memorybus.redis.connect import connect_redis
from memorybus.redis.facts import Server, faults_of
from memorybus.text.display import count_text

from memorybus_console.operations.doctor import instances
from memorybus_console.operations.doctor.instances import check_instances, run_guarded

_REPAIR: Final = "repair what the error names, then run memorybus doctor again"


class Topic(msgspec.Struct, frozen=True):
    """The findings that make one check."""

    name: str
    codes: tuple[Code, ...]
    describe: Callable[[Status], str]  # returns what to show if there are none; "" for nothing


def _describe_served(status: Status) -> str:
    served = [p.live or p.name for p in status.providers if p.lanes_owned == p.lanes]
    return f"all lanes of {', '.join(served)} are owned" if served else "none has lanes"


LOG_TOPICS: Final = (
    Topic("durability", ("no_append_only_file",), lambda s: s.redis.durability),
    Topic(
        "continuity",
        ("data_loss", "foreign_entries"),
        lambda _: "no event is missing",
    ),
    Topic("persistence", ("persistence", "read_only"), lambda _: "Redis persists writes"),
    Topic("memory", ("memory",), lambda s: str(s.memory)),
    Topic("disk", ("disk",), lambda s: str(s.disk or "")),
    Topic("archive", ("archive", "archive_ahead"), lambda s: describe_archive(s.archive)),
    Topic("lanes", ("lane_halted",), lambda _: "no lane is stopped"),
)
SERVICE_TOPICS: Final = (
    Topic("worker", ("no_worker", "worker_gone", "versions"), lambda s: f"{len(s.workers)} alive"),
    Topic("providers", ("unserved",), _describe_served),
    Topic("backends", ("failing",), lambda _: "no backend is failing"),
    Topic("paused", ("paused",), lambda _: "no provider is paused"),
    Topic("dead letters", ("dead_letters",), lambda _: "none"),
    Topic(
        "backlog",
        ("behind", "hot_lane"),
        lambda s: count_text(sum(p.backlog for p in s.providers), "event"),
    ),
    Topic("model", ("model",), lambda s: str(s.model or "none is asked")),
    Topic("recalls", ("recalls",), lambda s: f"{sum(j.queued for j in s.jobs)} queued"),
    Topic("spools", ("spool",), lambda s: count_text(s.spool.events, "unsent event")),
)
"""If Redis refuses writes, only what is wrong of these is shown: workers cannot show themselves."""


def examine(
    settings: Settings, clock: Clock = SYSTEM, make_id: NewId = new_id, *, deep: bool = False
) -> Iterator[Check]:
    """Run every check in order, and yield each result as soon as it is known.

    Args:
        make_id: makes the canary's word.
        deep: whether to write the canary's word into every provider, recall it, and remove it.
    """
    yield check_python()
    yield run_guarded("server binary", START_REMEDY, lambda: check_server_binary(settings))
    spool = check_spool(settings)
    yield spool
    # If nothing can be written here, all later checks fail for this reason and need its remedy.
    start = spool.fix or START_REMEDY
    yield run_guarded("other spools", start, lambda: check_other_spools(settings))
    yield run_guarded("privacy", start, lambda: check_privacy(settings))
    log = EventLog(connect_redis(settings), settings)
    try:
        server = log.server()
    except LogUnavailable as error:
        fix = spool.fix or error.remedy or _REPAIR
        unreached = Check(name="redis", ok=False, found=error.problem, fix=fix)
        yield unreached
        yield from (_check_not_tried(name, unreached) for name in ("worker", "canary"))
        return
    yield Check(name="redis", ok=True, found=f"answers at {redacted(settings.redis_url)}")
    obstacle = yield from check_log(log, server)
    yield from check_status(settings, clock)
    if obstacle is not None:
        yield _check_not_tried("canary", obstacle)
        return
    yield run_guarded("canary", start, lambda: _check_canary(settings, clock, make_id(), deep=deep))


def _check_canary(settings: Settings, clock: Clock, word: str, *, deep: bool) -> Check:
    send = instances.send_and_recall if deep else instances.send_and_await
    return send(settings, clock, word)


def _check_not_tried(name: str, obstacle: Check) -> Check:
    found = f"not tried: see {obstacle.name}"
    return Check(name=name, ok=False, found=found, fix=obstacle.fix)


# -- the log ---------------------------------------------------------------------------------------


def check_log(log: EventLog, server: Server) -> Generator[Check, None, Check | None]:
    """Check the server, and that the log in it can be opened; this is done if it evicts nothing.

    Returns:
        The failed check that prevents publishing and applying; None if nothing does.
    """
    yield check_version(server)
    needed = check_eviction(server)
    yield needed
    if needed.ok:
        needed = _check_opens(log)
        yield needed
    return None if needed.ok else needed


def check_eviction(server: Server) -> Check:
    """Check that the server never evicts keys (G1)."""
    wrong = server_alarms(ServerState(policy=server.policy))
    return Check.from_findings("eviction policy", wrong, server.policy)


def check_version(server: Server) -> Check:
    """Check that the server is new enough, and name the known faults of its release."""
    version = parse_version(f"v={server.version}")
    name = f"{server.product} {server.version}"
    if version is None or version < OLDEST_VERSION:
        fix = f"use Redis {format_version(OLDEST_VERSION)} or later, or Valkey"
        return Check(name="redis version", ok=False, found=name, fix=fix)
    faults = list(faults_of(server))
    texts = "; ".join((name, *(f"{fault.text}: {fault.source}" for fault in faults)))
    fix = f"update to a {server.product} without these faults" if faults else ""
    return Check(name="redis version", ok=True, found=texts, fix=fix)


def _check_opens(log: EventLog) -> Check:
    """Check that the log can be opened, and that every key of its partitions is ours."""
    try:
        log.open()
        heads, foreign = log.heads(), log.foreign_keys()
    except (MemoryBusError, OSError) as error:
        return Check(name="log", ok=False, found=str(error), fix=_REPAIR)
    if foreign:
        found = f"not ours: {', '.join(foreign)}; these partitions are stopped"
        fix = "rename or delete these keys, or set another `namespace`"
        return Check(name="log", ok=False, found=found, fix=fix)
    total = sum(head.n for head in heads)
    return Check(
        name="log", ok=True, found=f"{len(heads)} partitions, {count_text(total, 'event')}"
    )


# -- the findings ----------------------------------------------------------------------------------


def check_status(settings: Settings, clock: Clock) -> Iterator[Check]:
    """Check everything that the status shows, and then the instances."""
    try:
        status = read_status(settings)
    except MemoryBusError as error:
        yield Check(name="status", ok=False, found=str(error), fix=_REPAIR)
        return
    yield from checks_of(status, settings.providers, clock.now_ms())
    yield from check_instances(settings, clock)


def checks_of(status: Status, configured: Sequence[str], now_ms: int) -> Iterator[Check]:
    """Yield one check for each topic: it fails if a finding of it is critical; pure.

    Args:
        now_ms: this machine's wall time in milliseconds.
    """
    wrong = findings_of(status, configured, now_ms)
    hidden = SERVICE_TOPICS if refuses_writes(status) else ()
    for topic in (*LOG_TOPICS, *SERVICE_TOPICS):
        findings = [finding for finding in wrong if finding.code in topic.codes]
        well = "" if topic in hidden else topic.describe(status)
        if findings or well:
            yield Check.from_findings(topic.name, findings, well)


HEADROOM_BYTES = 256 << 20  # free bytes below which a disk is called nearly full

_MAX_NAMED = 3  # how many files that others can read are named


def check_python() -> Check:
    """Show the interpreter; this cannot fail, since the package does not install on an old one."""
    shown = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", ok=True, found=f"{shown} ({platform.python_implementation()})")


def check_server_binary(settings: Settings) -> Check:
    """Check that the embedded server could be started, unless a URL says it is not needed.

    Raises:
        MemoryBusError: no server was found that is new enough.
    """
    if settings.url:
        return Check(name="server binary", ok=True, found="not needed: a url is configured")
    binary = find_server_binary()
    return Check(name="server binary", ok=True, found=f"{binary.path} ({binary.name})")


def check_spool(settings: Settings) -> Check:
    """Check that the spool's directory can be written and has room."""
    place = settings.spool_dir
    try:
        private.directory(place)
        _try_write(place)
        free = shutil.disk_usage(place).free
    except OSError as error:
        fix = f"make {place} writable, or choose another data_dir"
        return Check(name="spool", ok=False, found=f"{place}: {error}", fix=fix)
    ok = free >= HEADROOM_BYTES
    found = f"{place} is writable, {free >> 20} MiB free"
    return Check(name="spool", ok=ok, found=found, fix="" if ok else f"make room on {place}")


def _try_write(place: Path) -> None:
    probe = place / ".doctor"
    private.write(probe, b"?")
    probe.unlink()


def check_other_spools(settings: Settings) -> Check:
    """Check that no event waits on this host for a Redis or namespace that is not configured."""
    places = sorted({path.parent for path in settings.spool_dir.parent.glob("*/*.db")})
    counts = {
        place: _count_waiting(settings, place) for place in places if place != settings.spool_dir
    }
    waiting = [f"{count} in {place}" for place, count in counts.items() if count]
    if not waiting:
        return Check(name="other spools", ok=True, found="no unsent events for another Redis")
    return Check(
        name="other spools",
        ok=False,
        found=f"unsent events for another Redis or namespace: {', '.join(waiting)}",
        fix="run memorybus up once with that --url and --namespace: it sends them",
    )


def _count_waiting(settings: Settings, place: Path) -> int:
    """Count a directory's unsent events, without those that the configured Redis has already."""
    namespace, _, where = place.name.rpartition("-")
    if settings.spool_dir.name.endswith(f"-{where}"):
        with suppress(MemoryBusError):
            other = msgspec.structs.replace(settings, namespace=namespace)
            return read_status(other).spool.events
    return sum(inspect_spool(path, {}).events for path in place.glob("*.db"))


def check_privacy(settings: Settings) -> Check:
    """Check that no other user of this machine can read the memories; ignore symbolic links."""
    roots = [root for root in (settings.data_dir, _local_archive(settings)) if root is not None]
    readable = [
        f"{path} ({mode:04o})" for root in roots for path, mode in _readable_by_others(root)
    ]
    if not readable:
        return Check(name="privacy", ok=True, found="only this user can read the files")
    more = f" and {len(readable) - _MAX_NAMED} more" if len(readable) > _MAX_NAMED else ""
    return Check(
        name="privacy",
        ok=False,
        found=f"other users can read: {', '.join(readable[:_MAX_NAMED])}{more}",
        fix=f"run: chmod -R go-rwx {shlex.join(map(str, roots))}",
    )


def _local_archive(settings: Settings) -> Path | None:
    """Return the archive's directory; None if the archive is elsewhere, or below `data_dir`."""
    place = settings.archive.removeprefix("file://")
    return Path(place) if place and "://" not in place and Path(place).is_dir() else None


def _readable_by_others(root: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files that others may read, with their modes, even inside closed directories.

    A copy of such a file elsewhere would be readable."""
    for path in (root, *sorted(root.rglob("*"))):
        with suppress(FileNotFoundError):  # other processes write and delete meanwhile
            status = path.lstat()
            if status.st_mode & 0o077 and not stat.S_ISLNK(status.st_mode):
                yield path, stat.S_IMODE(status.st_mode)
