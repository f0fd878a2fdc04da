"""Archive and log are one sequence, wherever the seam lies and whatever stands around it."""

from pathlib import Path

import msgspec
import pytest
from helpers.archive.past import PARTITION, Past, as_told, kinds, read_all
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from memorybus.archive.tombstones import DamageHandler, Tombstone
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable, ConfigError
from memorybus.events import TurnStarted
from memorybus.history import forward
from memorybus.history.history import History
from memorybus.history.log_reader import filter_event
from memorybus.log.entry import OMITTED_ENVELOPES, LoggedEvent, Place
from memorybus.query.filter import EventFilter
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, NumberRange, Plan
from memorybus.registry.homes import Home, Homes

EXAMPLES = example_settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def split(past: Past, data: st.DataObject, *, most: int = 40) -> int:
    """Write a past, seal some of it, trim some of that; return where the log begins."""
    past.write(data.draw(kinds(most)))
    size = len(past.events)
    sealed = data.draw(st.integers(0, size), label="sealed")
    sealed = past.seal(sealed, data.draw(st.lists(st.integers(1, size), max_size=3), label="cuts"))
    trimmed = data.draw(st.integers(0, min(sealed, size - 1)), label="trimmed")
    past.trim(trimmed)
    return trimmed


def archived(event: LoggedEvent) -> LoggedEvent:
    """Return an event as the archive keeps it."""
    volatile = isinstance(event.envelope.event, TurnStarted)
    return LoggedEvent(event.position, OMITTED_ENVELOPES["volatile"]) if volatile else event


def expected(past: Past, start: int, plan: Plan = WHOLE, *forgotten: Query) -> list[LoggedEvent]:
    """Return the whole past as readers shall see it when the log begins at an index."""
    sieve = EventFilter(plan, PARTITION, forgotten)
    seen = []
    for index, event in enumerate(past.events):
        kept = archived(event) if index < start else event
        seen.append(kept if kept is not event else filter_event(event, sieve))
    return seen


@EXAMPLES
@given(data=st.data(), count=st.integers(1, 7))
def test_every_split_reads_as_the_whole(new_past, data, count):
    """G7: whatever is sealed and trimmed, the history is the sequence that the log had."""
    with new_past() as past:
        start = split(past, data)
        assert as_told(read_all(past.history(), count)) == as_told(expected(past, start))


@EXAMPLES
@given(data=st.data(), count=st.integers(1, 7))
def test_a_plan_leaves_out_the_same_on_both_sides_of_the_seam(new_past, data, count):
    """G7, G8: what a plan or a tombstone leaves out does not depend on where it lies."""
    plan = Plan(
        query=data.draw(
            st.sampled_from(
                (
                    Query(),
                    Query(users=("ann",)),
                    Query(except_users=("ann",)),
                    Query(types=("UnknownEvent",)),
                    Query(sessions=("s-bob",), types=("TurnCompleted",)),
                    Query(lineages=("s-bob",)),
                )
            )
        ),
        spans=data.draw(st.sampled_from(({}, {PARTITION: (NumberRange(3, 9), NumberRange(12))}))),
    )
    tombs = data.draw(st.sampled_from(((), (Query(users=("bob",), types=("TurnCompleted",)),))))
    with new_past() as past:
        start = split(past, data)
        for number, query in enumerate(tombs):
            past.archive.forget(Tombstone(id=str(number), query=query, reason="asked"))
        found = read_all(past.history(), count, plan=plan)
        wanted = expected(past, start, plan, *tombs)
        assert [e.position.entry for e in found] == [e.position.entry for e in wanted]
        assert kept(found) == kept(wanted)


def kept(events: list[LoggedEvent]) -> list[bytes]:
    """Return what is not left out; why it is may be more than one reason."""
    return as_told([event for event in events if event.envelope.key])


@EXAMPLES
@given(data=st.data())
def test_a_scan_gives_what_is_wanted_once_and_in_order(new_past, monkeypatch, data):
    """G7: a scan is the history without what is left out."""
    query = data.draw(st.sampled_from((Query(), Query(users=("ann",)), Query(users=("eve",)))))
    monkeypatch.setattr(forward, "PAGE", 3)
    with new_past() as past:
        start = split(past, data)
        found = list(past.history().scan(query))
        assert as_told(found) == kept(expected(past, start, Plan(query=query)))


@EXAMPLES
@given(data=st.data())
def test_entries_are_found_on_both_sides(new_past, data):
    """G7: a checkpoint's entry is in the history also when it was trimmed."""
    with new_past() as past:
        start = split(past, data)
        history = past.history()
        entries = [event.position.entry for event in past.events]
        assert all(history.has(PARTITION, entry) for entry in entries)
        assert not history.has(PARTITION, "1-1")
        ours = None
        for event in past.events:
            assert history.last_before(PARTITION, event.position.entry) == ours, start
            ours = Place(event.position.entry, event.position.n)


@EXAMPLES
@given(data=st.data())
def test_numbers_and_moments_are_found_on_both_sides(new_past, data):
    """G7, G8: a number, a position and a time mean the same place whatever was trimmed."""
    with new_past() as past:
        split(past, data)
        ours = [event.position for event in past.events]
        history = past.history()
        for position in ours:
            place = history.place(PARTITION, position.n)
            assert place is not None
            assert place.n == position.n
            assert history.places(f"p00:{position.n}")[PARTITION] == position.n
            ms = int(position.entry.partition("-")[0])
            upto = [p.n for p in ours if int(p.entry.partition("-")[0]) <= ms]
            before = [p.n for p in ours if int(p.entry.partition("-")[0]) < ms]
            assert history.places(ms)[PARTITION] == max(upto)
            assert history.places(ms, inclusive=False)[PARTITION] == max(before, default=0)


def test_an_event_is_a_moment(new_past):
    """G8: up to an event means with it, from an event means not what came before."""
    with new_past() as past:
        past.write(["turn"] * 12)
        past.seal(8)
        past.trim(6)
        history = past.history()
        for event in past.events:
            known = event.envelope.id
            assert history.places(known)[PARTITION] == event.position.n
            assert history.places(known, inclusive=False)[PARTITION] == event.position.n - 1
        for inclusive in (True, False):  # behind the end lies nothing, and all before it
            assert history.places(f"p{PARTITION:02d}:99", inclusive=inclusive)[PARTITION] == 12
        with pytest.raises(ConfigError, match="no event"):
            history.places("f" * 32)
        with pytest.raises(ConfigError, match="not a time, position or event"):
            history.places("yesterday")


def test_what_is_damaged_is_named_where_it_begins(new_past):
    """G7: what stands before a damaged segment is read; the damage is named, never passed over."""
    with new_past() as past:
        past.write(["turn"] * 30)
        past.seal(20, [10])
        past.trim(20)
        segment = past.archive.segments(PARTITION)[1]
        path = next(past.settings.data_dir.rglob(Path(segment.file).name))
        path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
        history = past.history()
        found = history.read(PARTITION, count=500).events
        while found[-1].position.n < 10:
            last = found[-1].position
            found += history.read(PARTITION, last.entry, 500, after_n=last.n).events
        assert as_told(found) == as_told(past.events[:10])
        for _ in range(2):
            with pytest.raises(ArchiveDamaged, match=path.name):
                history.read(PARTITION, found[-1].position.entry, after_n=10)
        last = past.events[19].position
        behind = history.read(PARTITION, last.entry, after_n=last.n).events
        assert as_told(behind) == as_told(past.events[20:])
        unread: list[str] = []
        shown = list(history.scan(damage=DamageHandler(unread)))
        assert as_told(shown) == as_told(past.events[:10] + past.events[20:])
        assert path.name in unread[0]


def test_an_archive_that_lacks_what_was_sealed_is_not_taken_for_it(new_past):
    """G7: trimmed events that are not where the settings say are no gap: nothing goes on."""
    with new_past() as past:
        past.write(["turn"] * 9)
        past.seal(6)
        past.trim(6)
        settings = msgspec.structs.replace(past.settings, archive=str(past.settings.data_dir / "x"))
        history = History.from_settings(past.redis, settings)
        with pytest.raises(ArchiveUnavailable, match="events up to 6 were sealed"):
            history.read(PARTITION)
        assert len(history.read(PARTITION, past.events[5].position.entry, after_n=6).events) == 3


def test_what_was_trimmed_without_being_sealed_is_a_gap(new_past):
    """G7: lost events come as a number that does not follow, with or without an archive."""
    with new_past() as past:
        past.write(["turn"] * 9)
        past.trim(4)
        assert [e.position.n for e in past.history().read(PARTITION).events] == [5, 6, 7, 8, 9]
        settings = msgspec.structs.replace(past.settings, archive="s3://nowhere/at-all")
        assert len(History.from_settings(past.redis, settings).read(PARTITION).events) == 5


def test_the_log_alone_needs_no_archive(new_past, monkeypatch):
    """G7: what the log still has is read without asking where the archive is."""

    def refuse(*_: object) -> None:
        raise AssertionError("the archive was asked")

    with new_past() as past:
        past.write(["turn", "volatile", "foreign", "damaged"] * 3)
        past.seal(6)
        monkeypatch.setattr("memorybus.history.history.archive_of", refuse)
        history = History.from_settings(past.redis, past.settings)
        assert as_told(read_all(history, 4)) == as_told(past.events)


def test_the_archive_of_another_host_is_named(new_past):
    """G7: a lane that needs an archive on another host says where it lies."""
    with new_past() as past:
        past.write(["turn"] * 4)
        past.seal(3)
        past.trim(3)
        home = Home("0" * 32, "elsewhere", "/data/there", "1")
        Homes(past.redis, past.keys).move("@archive", home)
        with pytest.raises(ArchiveUnavailable, match="elsewhere in /data/there"):
            History.from_settings(past.redis, past.settings).read(PARTITION)
