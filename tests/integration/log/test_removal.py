"""What is forgotten is taken out of the log, where it is sealed, and out of Redis's own file."""

from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from memorybus.clock import SYSTEM
from memorybus.history.history import History
from memorybus.log.continuity import find_gaps
from memorybus.log.entry import LoggedEvent
from memorybus.log.inspection import LogInspector
from memorybus.log.removal import Removed, remove_entries, rewrite_redis_files
from memorybus.log.stream import EventLog
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION


def is_eves(event: LoggedEvent) -> bool:
    return event.envelope.scope.user == "eve"


def log_of(make_settings: MakeSettings) -> SealedLog:
    """Return a log of 30 sealed events, ten of them eve's, and five of hers that are not."""
    log = SealedLog(make_settings(**QUICK | {"hot_window": 3600.0}))
    log.append(10, user="eve")
    log.append(20)
    run_once(log.settings)
    log.append(5, user="eve")
    return log


def test_only_what_is_sealed_is_taken_out(redis_client, make_settings):
    """G7: what the archive does not have stays in the log, and is counted."""
    log = log_of(make_settings)
    events = EventLog(log.redis, log.settings)
    assert remove_entries(events, log.settings, is_eves) == Removed(gone=10, unsealed=5)
    assert len(log.logged()) == 5
    assert remove_entries(events, log.settings, is_eves) == Removed(gone=0, unsealed=5)


def test_nothing_else_is_lost(redis_client, make_settings):
    """G7: the history still has every event, in order, and no look finds a gap."""
    log = log_of(make_settings)
    before = [event.position for event in History.from_settings(log.redis, log.settings).scan()]
    remove_entries(EventLog(log.redis, log.settings), log.settings, is_eves)
    after = [event.position for event in History.from_settings(log.redis, log.settings).scan()]
    assert after == before
    inspector = LogInspector(log.redis, log.settings)
    states = inspector.read_partitions()
    numbers = inspector.numbers(states)
    assert find_gaps(P, states[P].view, numbers.get(P)) == []


def test_where_nothing_goes_the_log_stays_as_it_is(redis_client, make_settings):
    """The hot window is cut short only where an entry was taken out."""
    log = log_of(make_settings)
    before = len(log.logged())
    assert (
        remove_entries(EventLog(log.redis, log.settings), log.settings, lambda _: False)
        == Removed()
    )
    assert len(log.logged()) == before


def test_redis_rewrites_its_file_and_is_awaited(make_redis, make_settings):
    """When the call returns, a deleted text is not in the append-only file any more."""
    server = make_redis(appendonly="yes")
    client, secret = server.client(), b"wolpertinger"
    client.set("k", secret, ex=60)
    client.delete("k")
    files = [path.read_bytes() for path in server.directory.rglob("*.aof")]
    assert any(secret in body for body in files)
    assert rewrite_redis_files(make_settings(url=server.url), 20.0, SYSTEM) == []
    files = [path.read_bytes() for path in server.directory.rglob("*.aof")]
    assert not any(secret in body for body in files)


def test_a_rewrite_that_cannot_be_had_is_named(make_redis, make_settings):
    """A user of Redis without the permission, and too short a wait, are named with what to do."""
    server = make_redis(appendonly="yes")
    settings = make_settings(url=server.url)
    [late] = rewrite_redis_files(settings, 0.0, SYSTEM)
    assert "run this again" in late
    server.client().execute_command("ACL", "SETUSER", "default", "-bgrewriteaof")
    [refused] = rewrite_redis_files(settings, 20.0, SYSTEM)
    assert refused.endswith("redis-cli bgrewriteaof")


def test_a_redis_without_such_a_file_needs_no_rewrite(make_redis, make_settings):
    """Nothing is asked of a Redis that keeps no append-only file."""
    assert (
        rewrite_redis_files(make_settings(url=make_redis(appendonly="no").url), 20.0, SYSTEM) == []
    )
