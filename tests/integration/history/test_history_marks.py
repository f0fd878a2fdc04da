"""Reading back can be stopped anywhere and gone on with: nothing is lost, nothing comes twice."""

from itertools import islice

import pytest
from helpers.archive.past import PARTITION, Past, kinds
from helpers.stories.people import publish
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from memorybus.archive import rows
from memorybus.events import Omitted
from memorybus.history import backward
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query
from memorybus_console.operations import journal


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
