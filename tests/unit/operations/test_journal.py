"""The log is shown in one order, filtered, and followed without a gap."""

from itertools import islice

import pytest
from memorybus.events import (
    Envelope,
    Position,
    Scope,
    SessionEnded,
    SessionRef,
    TurnCompleted,
    UnknownEvent,
)
from memorybus.history.forward import merge_in_order, merge_newest_first
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START, Head
from memorybus.query.query import Query
from memorybus_console.operations import journal


class ListedLog:
    """A log that is a list per partition: the calls the journal makes."""

    def __init__(self, *partitions):
        self.partitions = [list(p) for p in partitions]

    def read(self, partition, after=START, count=500):
        """Return what stands after an entry."""
        found = [e for e in self.partitions[partition] if _key(e.position.entry) > _key(after)]
        return found[:count]

    def scan(self, query, damage=None):
        """Return everything in order."""
        return merge_in_order(map(iter, self.partitions))

    def scan_backward(self, query, heads=None, damage=None):
        """Return everything, newest first."""
        return merge_newest_first(map(reversed, self.partitions))

    def heads(self):
        """Return the ends."""
        ends = [p[-1].position.entry if p else START for p in self.partitions]
        return [Head(p, 1, entry) for p, entry in enumerate(ends)]

    def wait(self, after, timeout):
        """Return the first new entry of each partition with news."""
        news = {p: self.read(p, entry) for p, entry in after.items()}
        return {p: events[0].position.entry for p, events in news.items() if events}


def _key(entry):
    return tuple(int(part) for part in entry.split("-"))


def event(partition, entry, session="s", what=None, owner="default"):
    """Return a logged event."""
    envelope = Envelope(
        id="0" * 32,
        key="session:s",
        scope=Scope(agent=owner, user=owner),
        session=SessionRef(session, "root"),
        at=1,
        event=what or TurnCompleted(user="x"),
    )
    return LoggedEvent(Position(partition, entry, 1), envelope)


def entries(events):
    """Return the entries of events."""
    return [(e.position.partition, e.position.entry) for e in events]


LOG = ListedLog(
    [event(0, "5-0"), event(0, "10-0"), event(0, "10-2")],
    [event(1, "9-9"), event(1, "10-1")],
    [],
)

ALL = journal.EventSelection(canaries=True)


def test_partitions_are_merged_by_the_time_of_their_entries():
    """Numbers are compared as numbers, the sequence after the millisecond."""
    assert entries(journal.scan_events(LOG, ALL)) == [
        (0, "5-0"),
        (1, "9-9"),
        (0, "10-0"),
        (1, "10-1"),
        (0, "10-2"),
    ]


def test_the_newest_stand_last():
    """A limited listing keeps the end of the log, in order."""
    assert entries(journal.newest_events(LOG, ALL, 2)) == [(1, "10-1"), (0, "10-2")]
    assert entries(journal.newest_events(LOG, ALL, 0)) == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (journal.EventSelection(), True),
        (journal.EventSelection(session="s"), True),
        (journal.EventSelection(session="root"), True),
        (journal.EventSelection(session="other"), False),
        (journal.EventSelection(type="sessionended"), True),
        (journal.EventSelection(type="TurnCompleted"), False),
        (journal.EventSelection(session="other", type="SessionEnded"), False),
    ],
)
def test_events_are_chosen_by_session_and_type(wanted, expected):
    """A session means its lineage too; both conditions must hold."""
    assert wanted.wants(event(0, "1-0", what=SessionEnded())) is expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (journal.EventSelection(), (False, True, True)),
        (journal.EventSelection(canaries=True), (True, True, True)),
        (journal.EventSelection(session="doctor:x"), (True, True, False)),
        (journal.EventSelection(session="root"), (True, True, True)),
    ],
)
def test_canaries_are_shown_when_asked_for(wanted, expected):
    """What the doctor published is hidden; a person's session of such a name or scope is not."""
    canary = event(0, "1-0", session="doctor:x", owner="doctor")
    namesake = event(0, "1-0", session="doctor:x")
    colleague = event(0, "1-0", session="rounds", owner="doctor")

    assert tuple(map(wanted.wants, (canary, namesake, colleague))) == expected


def test_events_of_no_known_type_are_chosen_by_either_name():
    """An unknown event goes by its own name and by that of its kind."""
    dreamt = event(0, "1-0", what=UnknownEvent(name="Dreamt", wire_version=9, raw=b""))

    assert journal.EventSelection(type="UnknownEvent").wants(dreamt)
    assert journal.EventSelection(type="dreamt").wants(dreamt)
    assert not journal.EventSelection(type="TurnCompleted").wants(dreamt)


def test_following_begins_where_listing_ended():
    """What comes after the ends that a listing read back from is shown once, in order."""
    log = ListedLog([event(0, "5-0")], [])
    places = journal.ReadPositions.behind_heads(log.heads())

    log.partitions[1].append(event(1, "6-0"))
    log.partitions[0].append(event(0, "7-0"))

    assert entries(islice(journal.follow_log(log, places), 2)) == [(1, "6-0"), (0, "7-0")]


@pytest.mark.parametrize(
    ("wanted", "query"),
    [
        (journal.EventSelection(), Query()),
        (journal.EventSelection(session="s"), Query(lineages=("s",))),
        (
            journal.EventSelection(type="turncompleted"),
            Query(types=("TurnCompleted", "UnknownEvent")),
        ),
        (journal.EventSelection(type="Dreamt"), Query(types=("UnknownEvent", "UnknownEvent"))),
    ],
)
def test_filters_are_asked_of_the_history(wanted, query):
    """The history is asked for no less than what passes, and for not much more."""
    assert wanted.query() == query
