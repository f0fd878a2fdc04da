"""The doctor's checks: each says what is wrong and what to do, and hides no other."""

from typing import get_args

import msgspec
import pytest
from memorybus.archive.seals import ArchiverReport, ArchiverReports
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.health.finding import Code, Finding
from memorybus.health.findings import (
    START_REMEDY,
    ServerState,
    gap_alarms,
    memory_alarms,
    server_alarms,
)
from memorybus.health.status import (
    ArchiveStatus,
    Continuity,
    Disk,
    Memory,
    ProviderStatus,
    RedisStatus,
    SpoolStatus,
    Status,
    WorkerStatus,
    build_archive_status,
)
from memorybus.ids import new_id
from memorybus.log.continuity import Gap
from memorybus.outbox.files import SpoolFiles
from memorybus.redis.facts import Server
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, InstancePause, InstancesView, Live, command_pause
from memorybus.testing import FakeClock
from memorybus_console.operations.doctor import doctor, instances
from memorybus_console.operations.doctor.doctor import (
    LOG_TOPICS,
    SERVICE_TOPICS,
    check_eviction,
    check_version,
    checks_of,
)
from memorybus_console.operations.doctor.instances import check_left_behind

QUIET = Memory(0, None, "unknown")
ALIVE = [WorkerStatus("w", "h", 1, 32, "2026-01-01T00:00:00.000Z")]


def provider(name, *, owned=16, applied=5, backlog=0):
    """Return a provider as the monitor sees it."""
    return ProviderStatus(name, applied, backlog, None, 0, 0, 16, owned)


def status(*providers, workers=ALIVE):
    """Return a status of some providers."""
    return Status(
        redis=RedisStatus("unix:///x", "7.2.4", "aof:everysec"),
        spool=SpoolStatus(0, 0, None),
        partitions=16,
        providers=list(providers),
        workers=workers,
        jobs=[],
        alarms=[],
        continuity=Continuity(None, []),
        memory=QUIET,
        disk=None,
    )


def found(checks):
    """Return checks by name."""
    return {check.name: check for check in checks}


def topics(status, *configured):
    """Return the checks of what is wrong with a status, by name."""
    return found(checks_of(status, configured, 0))


def test_the_doctor_leaves_no_finding_out():
    """Every code of a finding has one check, but for those that are found before the status."""
    codes = [code for topic in (*LOG_TOPICS, *SERVICE_TOPICS) for code in topic.codes]

    assert sorted([*codes, "eviction_policy", "redis_away"]) == sorted(get_args(Code))


def test_a_lane_that_is_stopped_fails_a_check():
    """What `memorybus check` calls critical, the doctor calls failed, with the same remedy."""
    halted = Finding("lane_halted", "critical", "rec:p01", "partition p01 is stopped", "repair it")

    check = topics(msgspec.structs.replace(status(), alarms=[halted]))["lanes"]

    assert (check.ok, check.fix) == (False, "repair it")


def test_a_sound_log_passes_every_check():
    """G7, G10: doctor shows that the log is whole, how full memory is, and what is sealed."""
    archive = ArchiveStatus(working=True, error="")
    sound = msgspec.structs.replace(status(provider("p")), archive=archive, disk=Disk(9, 1))

    checks = topics(sound)

    assert list(checks) == [topic.name for topic in (*LOG_TOPICS, *SERVICE_TOPICS)]
    assert all(check.ok and not check.fix for check in checks.values())
    assert checks["archive"].found.startswith("0 events sealed, none waiting")
    assert "disk" not in topics(status())


def test_an_alarm_fails_its_check_and_a_warning_does_not():
    """G7, G10: data loss fails with its remedy; memory that is nearly full passes with one."""
    (gap,) = gap_alarms([Gap(3, 1, 4, 4)], Keys("ns"))
    (soon,) = memory_alarms(Memory(85, 100, "maxmemory"))

    checks = topics(msgspec.structs.replace(status(), alarms=[gap, soon]))

    assert (checks["continuity"].ok, checks["continuity"].fix) == (False, gap.remedy)
    assert gap.text in checks["continuity"].found
    assert (checks["memory"].ok, checks["memory"].fix) == (True, soon.remedy)
    assert checks["persistence"].ok


def test_a_redis_that_refuses_writes_is_not_blamed_on_workers():
    """G9: workers that cannot show themselves are no finding, and no check calls them well."""
    full = Finding("persistence", "critical", "aof", "the file cannot be written", "make room")

    checks = topics(msgspec.structs.replace(status(workers=[]), alarms=[full]))

    assert not checks["persistence"].ok
    assert "worker" not in checks


def test_without_redis_every_remedy_starts_it(short_dir):
    """What needs Redis is not tried without it, and says what to run; no canary is left behind."""
    checks = found(doctor.examine(Settings(data_dir=short_dir), FakeClock()))

    failed = {name: check.fix for name, check in checks.items() if not check.ok}
    assert failed == dict.fromkeys(("redis", "worker", "canary"), "run: memorybus up")
    assert list(short_dir.rglob("*.db")) == []


def test_without_a_configured_redis_the_url_is_named(short_dir):
    """A Redis that we do not start is not started by `memorybus up`."""
    settings = Settings(data_dir=short_dir, url="redis://:secret@127.0.0.1:1")

    checks = found(doctor.examine(settings, FakeClock()))

    assert "127.0.0.1:1" in checks["redis"].fix
    assert "memorybus up" not in checks["canary"].fix
    assert "secret" not in str(checks)


def test_an_unwritable_place_is_the_remedy_of_all(short_dir):
    """A server cannot be started where nothing can be written: that comes first."""
    (short_dir / "file").write_text("in the way")

    checks = found(doctor.examine(Settings(data_dir=short_dir / "file"), FakeClock()))

    fixes = {checks[name].fix for name in ("spool", "redis", "worker", "canary")}
    assert len(fixes) == 1
    assert "choose another data_dir" in fixes.pop()


def test_no_live_worker_is_told():
    """Without a worker the remedy starts one."""
    assert topics(status(workers=[]))["worker"].fix == START_REMEDY
    assert topics(status())["worker"].ok


@pytest.mark.parametrize(
    ("providers", "said"),
    [
        ((provider("builtin"),), ""),
        (
            (provider("builtin"), provider("notes", owned=0)),
            "notes is configured, but no worker",
        ),
        ((provider("builtin", owned=3),), "builtin has lanes without an owner"),
        ((provider("old", owned=0),), "old has lanes without an owner"),
    ],
)
def test_every_configured_provider_must_be_served(providers, said):
    """A name that no worker serves fails the check, whatever else is well."""
    check = topics(status(*providers), "builtin", "notes")["providers"]

    assert check.ok is not bool(said)
    assert said in check.found
    assert bool(check.fix) is bool(said)


@pytest.mark.parametrize(
    ("workers", "ok", "warns"),
    [
        ({"w": ArchiverReport(1)}, True, False),
        ({}, True, True),
        ({"w": ArchiverReport(1, elsewhere=True)}, True, True),
        (
            {"w": ArchiverReport(1, error="the archive needs pyarrow, which is not installed")},
            False,
            True,
        ),
    ],
)
def test_an_archive_that_trims_nothing_is_not_ticked(workers, ok, warns):
    """G7: what keeps every worker from archiving fails at once; nobody there is a warning."""
    archive = build_archive_status({}, ArchiverReports({}, workers), None)

    check = topics(msgspec.structs.replace(status(), archive=archive))["archive"]

    assert check.ok is ok
    assert bool(check.fix) is warns
    assert ("nothing is trimmed" in check.found) is warns


@pytest.mark.parametrize(
    ("policy", "durability", "severities"),
    [
        ("noeviction", "aof:everysec", (True, False, True, False)),
        ("allkeys-lru", "aof:always", (False, True, True, False)),
        ("noeviction", "snapshots", (True, False, True, True)),
    ],
)
def test_the_doctor_judges_a_server_as_the_alarms_do(policy, durability, severities):
    """G1: a policy that evicts fails; a Redis without an append-only file works, with a remedy."""
    server = Server("7.2.4", policy, durability)
    alarms = list(server_alarms(ServerState(policy=server.policy, aof="aof" in server.durability)))

    evicts = check_eviction(server)
    lasts = topics(msgspec.structs.replace(status(), alarms=alarms))["durability"]

    assert (evicts.ok, bool(evicts.fix), lasts.ok, bool(lasts.fix)) == severities


def spooled(settings):
    """Leave one event in a spool, as a dead process does."""
    files = SpoolFiles(settings.spool_dir, new_id, max_bytes=1 << 20, disk_reserve=0)
    spool = files.claim()
    spool.append(0, b"i" * 16, b"d" * 8, b"body")
    spool.close()


def test_events_for_another_redis_are_told(short_dir):
    """Events that wait for another destination are named by directory; our own are not."""
    ours = Settings(data_dir=short_dir)
    other = msgspec.structs.replace(ours, url="redis://elsewhere", namespace="zz")
    spooled(ours)
    assert doctor.check_other_spools(ours).ok

    spooled(other)
    check = doctor.check_other_spools(ours)

    assert not check.ok
    assert f"1 in {other.spool_dir}" in check.found
    assert str(ours.spool_dir) not in check.found
    assert "--namespace" in check.fix


def test_what_our_own_redis_has_does_not_wait(monkeypatch, short_dir):
    """A spool of another namespace on our own Redis is asked for, not guessed at."""
    ours = Settings(data_dir=short_dir)
    spooled(msgspec.structs.replace(ours, namespace="zz"))
    asked = []

    def read(settings):
        asked.append(settings.namespace)
        return status()

    monkeypatch.setattr(doctor, "read_status", read)

    assert doctor.check_other_spools(ours).ok
    assert asked == ["zz"]


class FakeBus:
    """A bus whose Redis is interrupted, or away; notes what is published."""

    def __init__(self, flushes):
        self.settings = None
        self.flushes = iter(flushes)
        self.told = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.told.append("closed")

    def session(self, *_, **__):
        """Be the session, too."""
        return self

    def memory_written(self, action, *_, **__):
        """Note it."""
        self.told.append(action)

    def ended(self, reason):
        """Note it."""
        self.told.append("ended")

    def flush(self, level, timeout):
        """Do what was planned for this call."""
        outcome = next(self.flushes)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def recall(self, *_, **__):
        """Find no worker."""
        raise LogUnavailable("gone")


@pytest.mark.parametrize(
    ("flushes", "raised"),
    [((KeyboardInterrupt(), False), KeyboardInterrupt), ((True, True), LogUnavailable)],
    ids=["interrupted", "Redis lost"],
)
def test_an_interrupted_canary_is_removed(flushes, raised, monkeypatch, short_dir):
    """Whatever stops the canary, its memory is taken back, and the reason goes on."""
    bus = FakeBus(flushes)
    monkeypatch.setattr(instances.MemoryBus, "connect", lambda settings: bus)

    with pytest.raises(raised):
        instances.send_and_recall(Settings(data_dir=short_dir), FakeClock(), "w1")

    assert bus.told == ["add", "remove", "ended", "closed"]


@pytest.mark.parametrize(
    ("check", "ok", "said"),
    [
        (instances.check_recall("It sings w1.", 0.03), True, "30 ms"),
        (instances.check_recall("", 10.0), False, "not recalled"),
        (instances.NOT_LOGGED, False, "did not take it"),
    ],
)
def test_the_canary_says_how_far_it_came(check, ok, said):
    """Each stage that was not reached has its own words."""
    assert check.ok is ok
    assert said in check.found


@pytest.mark.parametrize(
    ("product", "version", "faults"),
    [
        ("Redis", "6.2.14", ["CVE-2025-49844"]),
        ("Redis", "6.2.20", []),
        ("Redis", "7.0.15", ["CVE-2025-49844"]),
        ("Redis", "8.2.3", []),
        ("Redis", "8.4.0", []),
        ("Valkey", "8.1.4", ["CVE-2025-67733", "CVE-2026-23631"]),
        ("Valkey", "9.1.2", []),
    ],
)
def test_a_server_with_known_faults_is_named(product, version, faults):
    """The doctor names product and release, warns of each published fault and gives its source."""
    check = check_version(Server(version, "noeviction", "aof:everysec", product))
    assert check.ok
    assert check.found.startswith(f"{product} {version}")
    assert [fault for fault in FAULTS if fault in check.found] == faults
    assert bool(check.fix) == bool(faults) == ("https://" in check.found)


FAULTS = ["CVE-2025-49844", "CVE-2025-67733", "CVE-2026-23631"]


@pytest.mark.parametrize("version", ["6.0.16", "unknown"])
def test_a_server_that_is_too_old_fails(version):
    """A server before Redis 6.2, or one that names no release, is not used."""
    check = check_version(Server(version, "noeviction", "aof:everysec"))
    assert not check.ok
    assert "6.2.0" in check.fix


NEXT = Instance(name="p@1", provider="p", purpose="rebuild")
CHECKED = Instance(name="p.verify@1", provider="p", purpose="verify")
COPY = Instance(name="may", provider="p")
HELD = command_pause("rebuild", "p", "p@1", "ann", 1)


def view(*copies: Instance, live: Live | None = None, **held: InstancePause) -> InstancesView:
    """Return the three hashes."""
    return InstancesView({one.name: one for one in copies}, {"p": live} if live else {}, held)


@pytest.mark.parametrize(
    ("seen", "ok", "said"),
    [
        (view(COPY), True, "no rebuild or verification was interrupted"),
        (view(NEXT, live=Live("p@1", "p")), True, "no rebuild or verification was interrupted"),
        (view(NEXT, live=Live("p@1", "p", leaving="p")), True, "p was swapped"),
        (view(NEXT), True, "p@1 follows the log unused"),
        (view(CHECKED), True, "p.verify@1 was left by a verification"),
        (view(NEXT, CHECKED, p=HELD), False, "stopped by a command that has ended"),
        (view(p=InstancePause("maintenance")), True, "no rebuild or verification was interrupted"),
    ],
)
def test_what_goes_on_unseen_is_named(seen, ok, said):
    """G8: what a command that is gone left is named with what to do; nothing while it lives."""
    found = check_left_behind(seen, ())
    assert (found.ok, found.found.startswith(said)) == (ok, True), found.found
    assert bool(found.fix) == (said != "no rebuild or verification was interrupted")
    assert check_left_behind(seen, ("p",)).found == "no rebuild or verification was interrupted"
