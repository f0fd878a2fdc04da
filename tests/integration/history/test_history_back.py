"""The history read backward, whole or in pieces: it is the history, and costs a page at most."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from helpers.archive.past import PARTITION, Past, as_told, kinds
from helpers.stories.people import publish
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from memorybus import KeyHistory, MemoryBus
from memorybus.archive import rows
from memorybus.archive.tombstones import DamageHandler, Tombstone
from memorybus.errors import ArchiveDamaged
from memorybus.events import Omitted, TurnStarted
from memorybus.history import backward, forward
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus_console.operations import journal


@example_settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.data())
def test_backward_is_the_reverse_of_forward(new_past, monkeypatch, data):
    """G7: whatever is sealed, trimmed, lost, asked for and forgotten, both ways give the same."""
    monkeypatch.setattr(backward, "_FIRST_PAGE", 2)
    monkeypatch.setattr(forward, "PAGE", 3)
    monkeypatch.setattr(rows, "_PAGE", 3)
    queries = (Query(), Query(users=("ann",)), Query(users=("eve",)), Query(sessions=("s-bob",)))
    query = data.draw(st.sampled_from(queries))
    with new_past() as past:
        past.write(data.draw(kinds(30)))
        size = len(past.events)
        sealed = data.draw(st.integers(0, size))
        sealed = past.seal(sealed, data.draw(st.lists(st.integers(1, size), max_size=3)))
        past.trim(data.draw(st.integers(0, min(sealed, size - 1))))
        past.lose(data.draw(st.sets(st.integers(0, max(0, sealed - 1)))) if sealed else ())
        if sealed and data.draw(st.booleans()):
            hidden = Query(users=("bob",), types=("TurnCompleted",))
            past.archive.forget(Tombstone(id="1", query=hidden, reason="asked"))
        history = past.history()
        found = list(history.scan(query))
        assert as_told(list(history.scan_backward(query))) == as_told(found)[::-1]
        if query == Query():
            assert whole(past) <= {event.position.n for event in found}


def whole(past: Past) -> set[int]:
    """Return the numbers of all events of ours but those that are not archived, or hidden."""
    return {
        one.position.n
        for one in past.events
        if not isinstance(one.envelope.event, TurnStarted) and one.envelope.scope.user != "bob"
    }


class Counting:
    """Redis that counts the entries it gives."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self.given = 0

    def execute_command(self, *words: Any) -> Any:
        """Pass a command on."""
        found = self._redis.execute_command(*words)
        self.given += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        """Pass everything else on."""
        return getattr(self._redis, name)


def cost(past: Past, wanted: journal.EventSelection, limit: int) -> int:
    """Return how many entries of the log are read for the newest so many events."""
    counting = Counting(past.redis)
    history = History(EventLog(counting, past.settings))
    assert len(journal.newest_events(history, wanted, limit)) == limit
    return counting.given


def test_the_newest_cost_the_same_however_long_the_history_is(new_past):
    """A listing reads a page of the end; for a filter it reads back until enough are found."""
    with new_past() as past:
        past.write(["turn"] * 40 + ["other"] * 5 + ["turn"] * 5)
        short = cost(past, journal.EventSelection(), 10)
        past.write(["turn"] * 200 + ["other"] * 5 + ["turn"] * 45)
        assert cost(past, journal.EventSelection(), 10) == short
        assert cost(past, journal.EventSelection(session="s-bob"), 5) < 150
        assert cost(past, journal.EventSelection(session="s-bob"), 10) == 300


def test_only_the_newest_segments_are_opened(new_past):
    """What the log lacks is read from the archive's end: no older file is touched."""
    with new_past() as past:
        past.write(["turn"] * 30 + ["other"])
        past.seal(30, [10, 20])
        past.trim(30)
        for segment in past.archive.segments(PARTITION)[:2]:
            next(past.settings.data_dir.rglob(Path(segment.file).name)).unlink()
        found = list(islice(past.history().scan_backward(), 11))
        assert as_told(found) == as_told(past.events[:19:-1])


def test_the_segments_of_others_are_not_opened(new_past):
    """A key's history of named sessions opens no segment without them, whoever else is there."""
    with new_past() as past:
        past.write(["other"] * 10 + ["turn"] * 21)
        past.seal(30, [10])
        past.trim(30)
        next(
            past.settings.data_dir.rglob(Path(past.archive.segments(PARTITION)[1].file).name)
        ).unlink()
        theirs = past.events[0].envelope
        asked = (theirs.key, theirs.scope, ("TurnCompleted",))
        with MemoryBus.connect(past.settings) as bus:
            found = KeyHistory(bus, *asked, sessions=(theirs.session.id,)).events()
            assert [event.id for event in found] == [one.envelope.id for one in past.events[:10]]
            with pytest.raises(ArchiveDamaged):
                KeyHistory(bus, *asked).events()


def test_damage_is_told_and_the_rest_is_read(new_past):
    """G7: a segment that cannot be read is named, and what is older comes all the same."""
    with new_past() as past:
        past.write(["turn"] * 30)
        past.seal(20, [5, 10])
        past.trim(20)
        segment = past.archive.segments(PARTITION)[1]
        path = next(past.settings.data_dir.rglob(Path(segment.file).name))
        path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
        unread: list[str] = []
        found = list(past.history().scan_backward(damage=DamageHandler(unread)))
        assert as_told(found) == as_told((past.events[:5] + past.events[10:])[::-1])
        assert [path.name in why for why in unread] == [True]
        with pytest.raises(ArchiveDamaged, match=path.name):
            list(past.history().scan_backward())


def test_a_lost_line_of_the_manifest_is_told(new_past):
    """G7: a segment that no manifest names any more is no silent gap, wherever it stood."""
    for line in range(3):
        with new_past() as past:
            past.write(["turn"] * 30)
            past.seal(29, [10, 20])
            past.trim(29)
            *older, newest = sorted(
                past.settings.data_dir.rglob(f"{past.settings.namespace}/**/manifest-*.jsonl")
            )
            for path in older:
                path.unlink()
            lines = newest.read_bytes().splitlines(keepends=True)
            newest.write_bytes(b"".join([*lines[:line], b"x\n", *lines[line + 1 :]]))
            unread: list[str] = []
            history = History(past.log, past.open_archive())
            found = list(history.scan_backward(damage=DamageHandler(unread)))
            assert [event.position.n for event in found] == [30, *range(10 * line, 0, -1)]
            assert len(unread) == 1
            assert newest.name in unread[0]


def test_a_compaction_meanwhile_loses_nothing(new_past):
    """G7: segments that were joined and deleted under a reader are read as what they became."""
    with new_past() as past:
        past.write(["turn"] * 30)
        past.seal(30, [10, 20])
        past.trim(29)
        history: History = past.history()
        back = history.scan_backward()
        found = list(islice(back, 5))
        old = past.archive.segments(PARTITION)[:2]
        past.open_archive().replace(PARTITION, old)
        for segment in old:
            next(past.settings.data_dir.rglob(Path(segment.file).name)).unlink()
        assert as_told([*found, *back]) == as_told(past.events[::-1])


def in_pieces(history: History, query: Query, size: int) -> list[LoggedEvent]:
    """Return the wanted events, read so many at a time, each piece where the last one stopped."""
    found: list[LoggedEvent] = []
    mark = None
    while piece := list(islice(history.read_backward(query, mark), size)):
        last = piece[-1].position
        mark = BackwardMark(last.partition, last.entry)
        found += [one for one in piece if not isinstance(one.envelope.event, Omitted)]
    return found


@example_settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.data())
def test_pieces_are_the_whole(new_past, monkeypatch, data):
    """G7: whatever is sealed, trimmed, lost and asked for, pieces of any size are the whole."""
    monkeypatch.setattr(backward, "_FIRST_PAGE", 2)
    monkeypatch.setattr(rows, "_PAGE", 3)
    queries = (Query(), Query(users=("ann",)), Query(sessions=("s-bob",)), Query(users=("eve",)))
    query = data.draw(st.sampled_from(queries))
    with new_past() as past:
        past.write(data.draw(kinds(30)))
        size = len(past.events)
        sealed = data.draw(st.integers(0, size))
        sealed = past.seal(sealed, data.draw(st.lists(st.integers(1, size), max_size=3)))
        past.trim(data.draw(st.integers(0, min(sealed, size - 1))))
        past.lose(data.draw(st.sets(st.integers(0, max(0, sealed - 1)))) if sealed else ())
        history = past.history()
        found = in_pieces(history, query, data.draw(st.integers(1, 7)))
        assert found == list(history.scan_backward(query))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pieces_of_several_partitions_are_the_whole(ready, size):
    """Partitions whose events came in one millisecond are read on in their order."""
    publish(ready, 5)
    history = journal.open_history(ready)
    whole = list(history.scan_backward())
    assert len({one.position.partition for one in whole}) == ready.partitions
    assert in_pieces(history, Query(), size) == whole


@pytest.mark.parametrize("trimmed", [0, 8])
def test_an_event_is_read_by_its_place(new_past, trimmed):
    """An event is found by its entry, in the log and in the archive; else there is none."""
    with new_past() as past:
        past.write(["turn"] * 12)
        past.seal(8, [4])
        past.trim(trimmed)
        history = past.history()
        assert [at(history, one) for one in past.events] == past.events
        assert history.event_at(PARTITION, "1-1") is None
        assert history.event_at(PARTITION, "1999999999999-1") is None


def at(history: History, event: LoggedEvent) -> LoggedEvent | None:
    """Return what stands at an event's place."""
    return history.event_at(event.position.partition, event.position.entry)


def test_an_event_lies_in_the_log_in_a_segment_or_in_both(new_past):
    """G7: it is told where an event lies; what is sealed names its file."""
    with new_past() as past:
        past.write(["turn"] * 12)
        past.seal(8, [4])
        past.trim(4)
        lies = [past.history().whereabouts(one.position) for one in past.events]
    assert [one.in_log for one in lies] == [False] * 4 + [True] * 8
    assert [one.sealed for one in lies] == [True] * 8 + [False] * 4
    assert [bool(one.segment) for one in lies] == [True] * 8 + [False] * 4
    assert len({one.segment for one in lies}) == 3


@pytest.mark.parametrize(
    "query",
    [
        Query(types=("MemoryWritten",)),
        Query(types=("MemoryWritten", "SessionStarted")),
        Query(upto=1_600_000_000_000),
    ],
)
def test_segments_without_a_type_or_too_young_are_not_opened(new_past, query):
    """What the manifest tells of types and times is not looked for in the files."""
    with new_past() as past:
        sealed_and_gone(past)
        assert list(past.history().scan_backward(query)) == []


def sealed_and_gone(past: Past) -> None:
    """Seal turns, and take the segments away."""
    past.write(["turn"] * 12)
    past.seal(11)
    past.trim(11)
    for path in past.settings.data_dir.rglob("*.parquet"):
        path.unlink()
