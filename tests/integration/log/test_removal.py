"""Single entries are taken out of the log: only what is sealed, and nobody calls it a loss."""

from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from memorybus.history.history import History
from memorybus.log.continuity import find_gaps
from memorybus.log.entry import LoggedEvent
from memorybus.log.inspection import LogInspector
from memorybus.log.removal import Removed, remove_entries
from memorybus.log.stream import EventLog
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION


def is_eves(event: LoggedEvent) -> bool:
    """Say whose event it is."""
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
