"""The figures of insights, from the archive's files and the log's tail."""

import sys
from contextlib import closing
from typing import Any

import duckdb
import msgspec
import pytest
from helpers.archive.sealed_log import QUICK
from memorybus import MemoryBus
from memorybus.archive.format import parquet
from memorybus.archive.location import archive_of
from memorybus.archive.tombstones import Tombstone
from memorybus.errors import ArchiveDamaged
from memorybus.events import Derived, ModelUsage, SessionSwitched
from memorybus.history.history import History
from memorybus.insights import statements
from memorybus.insights.counting import Counter, MissingDuckDb
from memorybus.insights.reading import read_insights
from memorybus.insights.report import Insights
from memorybus.insights.rows import find_rows
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus.testing import FakeClock
from memorybus_workers.archiving.archiver import run_once

# 2026-05-28 was a Thursday; in Tokyo it begins nine hours earlier.
THURSDAY = 1_779_926_400_000
HOUR = 3_600_000
DAY = 24 * HOUR


def call(tool: str, arguments: str = "{}") -> dict[str, Any]:
    """Return a message in which a model calls a tool."""
    function = {"name": tool, "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


def talk(bus: MemoryBus) -> dict[str, str]:
    """Publish two people's sessions; return the ids of events by name."""
    ann = bus.session("s1", agent="helper", user="ann", platform="cli", warm=False, at=THURSDAY)
    messages = [
        {"role": "user", "content": "tidy up"},
        call("skill_view", '{"name": "tidy"}'),
        {"role": "tool", "tool_name": "skill_view", "content": "…"},
        call("terminal"),
        {"role": "tool", "tool_name": "terminal", "content": "ok"},
        call("skill_manage", '{"action": "patch", "name": "tidy", "content": "cut off'),
        {"role": "assistant", "content": "done"},
    ]
    details = {"model": "large", "tokens_in": 100, "tokens_out": 10}
    ann.turn_completed(
        "tidy up", "done", messages=messages, at=THURSDAY + HOUR, cost=0.5, **details
    )
    undone = ann.turn_completed("oops", "what", at=THURSDAY + HOUR, **details)
    ann.publish(
        SessionSwitched(
            new_id="s1", reason="rewind", rewound=True, retracted=(undone.event_id, "no id")
        ),
        at=THURSDAY + HOUR,
    )
    ann.compressing(messages, compression_count=1, at=THURSDAY + HOUR)
    ann.delegated("look", "seen", tokens_in=7, tokens_out=3, tool_count=2, at=THURSDAY + HOUR)
    ann.memory_written("add", "likes tea", at=THURSDAY + HOUR)
    ann.memory_written("replace", "likes coffee", old_text="tea", at=THURSDAY + HOUR)
    ann.ended("done", at=THURSDAY + 2 * HOUR)
    bob = bus.session(
        "s2", agent="helper", user="bob", platform="telegram", warm=False, at=THURSDAY + DAY
    )
    bob.turn_completed("hi", "hello", model="small", at=THURSDAY + DAY + HOUR)
    usage = (
        ModelUsage("small", calls=1, tokens_in=40, tokens_out=4, cost=0.25),
        ModelUsage("tiny", task="title_generation", calls=1, tokens_in=5, tokens_out=1),
    )
    bob.ended("quit", usage=usage, at=THURSDAY + DAY + HOUR)
    bus.flush("logged", 10.0)
    return {"undone": undone.event_id}


def read(settings, **options) -> Insights:
    """Return the insights of the day after the talk."""
    clock = FakeClock(THURSDAY + 2 * DAY)
    return read_insights(settings, zone="Asia/Tokyo", clock=clock, **options)


@pytest.fixture(name="where", params=["log", "archive", "both", "old archive"])
def _where(request) -> str:
    return request.param


@pytest.fixture(name="talked")
def _talked(make_settings, redis_url, where, monkeypatch):
    """Return the settings of a bus on which two people talked; `where` the events lie."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        if where == "both":
            bus.session("s0", user="ann", agent="helper", warm=False, at=THURSDAY - 90 * DAY)
            bus.flush("logged", 10.0)
            run_once(settings)
        talk(bus)
    if where == "old archive":
        monkeypatch.setattr(parquet, "FIGURES_VERSION", 0)
    if "archive" in where:
        run_once(settings)
    return settings


def test_all_figures_are_those_of_the_events(talked):
    """Sessions, turns, messages, tools, skills, tokens and cost, without the turn taken back."""
    insights = read(talked)
    overview = insights.overview
    assert (overview.sessions, overview.turns) == (2, 2)
    assert (overview.messages, overview.user_messages, overview.tool_messages) == (9, 2, 2)
    assert overview.tool_calls == 3
    assert overview.hours == 3.0
    assert (overview.tokens_in, overview.tokens_out, overview.cost) == (145, 15, 0.75)
    assert [(m.name, m.turns, m.tokens_in) for m in insights.models] == [
        ("large", 1, 100), ("small", 1, 40), ("tiny", 0, 5),
    ]  # fmt: skip
    assert {(p.name, p.sessions) for p in insights.platforms} == {("cli", 1), ("telegram", 1)}
    assert {(p.name, p.cost) for p in insights.people} == {("ann", 0.5), ("bob", 0.25)}
    assert [(a.name, a.sessions) for a in insights.agents] == [("helper", 2)]
    assert {(t.tool, t.calls) for t in insights.tools} == {
        ("skill_view", 1), ("terminal", 1), ("skill_manage", 1),
    }  # fmt: skip
    assert [(s.skill, s.loads, s.edits) for s in insights.skills] == [("tidy", 1, 1)]
    assert insights.compressions == 1
    assert msgspec.structs.astuple(insights.delegations) == (1, 2, 7, 3)
    assert [(m.where, m.learned, m.corrected) for m in insights.memories] == [
        ("store memory", 1, 1)
    ]
    assert insights.gaps == []


@pytest.mark.parametrize("where", ["both"], indirect=True)
def test_a_scan_reads_only_the_figures_that_it_counts(talked):
    """Of a segment's figures DuckDB decodes what a statement names, also beside the log's tail."""
    with closing(connect_redis(talked)) as redis:
        archive = archive_of(redis, talked)
        with closing(History(EventLog(redis, talked), archive)) as history:
            history.log.open()
            rows = find_rows(history, archive, 0)
    assert rows.files
    assert rows.tables
    with closing(duckdb.connect()) as db:
        Counter(db, 0).load(rows, Query(), ())
        db.execute("drop table talked")
        ((_, plan),) = db.execute(f"explain (format json) {statements.TALKED}").fetchall()
    assert "figures.tokens_in" in plan
    assert "figures.recalled" not in plan


def test_days_and_hours_are_those_of_the_zone(talked):
    """A turn at one o'clock in London is at ten in Tokyo."""
    activity = read(talked).activity
    assert activity.turns[3][10] == activity.turns[4][10] == 1
    assert activity.sessions[3][9] == activity.sessions[4][9] == 1
    assert sum(map(sum, activity.turns)) == 2
    assert activity.days == {"2026-05-28": 1, "2026-05-29": 1}
    assert (activity.active_days, activity.streak) == (2, 2)
    assert (activity.busiest_day, activity.busiest_hour) == ("2026-05-28", 10)


def test_only_the_wanted_person_agent_and_platform_count(talked):
    """A filter leaves nothing of the others in any figure."""
    assert [person.name for person in read(talked, user="bob").people] == ["bob"]
    assert read(talked, platform="cli").overview.tokens_in == 100
    assert read(talked, agent="nobody").overview == read(talked, days=1, user="ann").overview


def test_a_forgotten_person_does_not_count(talked):
    """As soon as the tombstone is there, nobody can read that the person was here."""
    redis = connect_redis(talked)
    archive = archive_of(redis, talked)
    archive.forget(Tombstone(id="t", query=Query(users=("ann",))))
    redis.close()
    insights = read(talked)
    assert [person.name for person in insights.people] == ["bob"]
    assert (insights.overview.turns, insights.tools, insights.memories) == (1, [], [])
    assert "ann" not in msgspec.json.encode(insights).decode()


def test_a_turn_that_entered_the_log_twice_counts_once(make_settings, redis_url):
    """A log that lost its tail gets it again: no figure doubles (G2)."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        talk(bus)
        redis = connect_redis(settings)
        for key in redis.scan_iter(f"*{settings.namespace}*log"):
            for _, fields in redis.xrange(key):
                redis.xadd(key, {b"n": fields[b"n"], b"r": fields[b"e"]})
        redis.close()
    assert read(settings).overview.turns == 2


def test_what_is_missing_is_named(make_settings, redis_url):
    """Turns without tokens and sessions without a cost are counted, not guessed."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False, at=THURSDAY)
        session.turn_completed("a", "b", at=THURSDAY)
        bus.flush("logged", 10.0)
    insights = read(settings)
    assert insights.overview.cost is None
    assert insights.gaps == ["1 of 1 turns have no tokens", "1 of 1 sessions have no cost"]


def test_an_empty_bus_has_empty_insights(settings):
    """Nothing has happened: every figure is 0, and none is missing."""
    insights = read(settings)
    assert insights.overview.sessions == insights.activity.streak == 0
    assert insights.activity.busiest_hour is None


def test_conclusions_count_with_what_they_cost(make_settings, redis_url):
    """What was derived is counted by kind; a conclusion without a model has no cost."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False, at=THURSDAY)
        fact = Derived(kind="fact", text="a", model="m", tokens_in=5, tokens_out=2, cost=0.5)
        for event in (fact, Derived(kind="summary", text="b")):
            session.publish(event, at=THURSDAY)
        bus.flush("logged", 10.0)
    derived = read(settings).derived
    assert [msgspec.structs.astuple(each) for each in derived] == [
        ("fact", 1, 5, 2, 0.5),
        ("summary", 1, 0, 0, None),
    ]


def test_a_damaged_segment_is_named(make_settings, redis_url):
    """A file that cannot be read is no traceback: the error names the next command."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        talk(bus)
    run_once(settings)
    for file in settings.data_dir.glob("archive/**/*.parquet"):
        file.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(ArchiveDamaged, match="memorybus archive verify"):
        read(settings)


def test_whatever_bytes_are_damaged_a_segment_is_named(make_settings, redis_url):
    """Each damage is read as before or is an error of the bus, never one of DuckDB."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        talk(bus)
    run_once(settings)
    (file, *_) = settings.data_dir.glob("archive/**/*.parquet")
    sealed = file.read_bytes()
    refused = 0
    for place in range(5, len(sealed), len(sealed) // 40):
        damaged = bytearray(sealed)
        damaged[place : place + 3] = bytes(255 - byte for byte in sealed[place : place + 3])
        file.write_bytes(damaged)
        try:
            read(settings)
        except ArchiveDamaged:
            refused += 1
    assert refused


@pytest.mark.parametrize("folder", ["user=eve", "omitted=x", "it's", "a*[b]?"])
def test_the_name_of_a_folder_changes_no_figure(make_settings, redis_url, tmp_path, folder):
    """DuckDB takes no column, no quote and no pattern from the path of the archive."""
    settings = make_settings(**QUICK, data_dir=tmp_path / folder)
    with MemoryBus.connect(settings) as bus:
        talk(bus)
    run_once(settings)
    assert {person.name for person in read(settings).people} == {"ann", "bob"}


def test_a_hostile_name_is_only_a_name(talked):
    """Quotes, backslashes and bytes that are no text select nobody, and break no statement."""
    for name in ("' or 1=1 --", '"\\"; drop view rows;', "a\udc80", "\0"):
        assert read(talked, user=name).overview.turns == 0
    assert read(talked).overview.turns == 2


def test_more_days_than_there_were_are_all_days(talked):
    """Days before 1970 do not exist, and no number of days is an error."""
    insights = read(talked, days=10**25)
    assert (insights.since, insights.overview.turns) == (0, 2)


def test_without_duckdb_the_extra_is_named(settings, monkeypatch):
    """A process that lacks the library learns which extra has it."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDuckDb, match=r"extra `insights`; run: .*install"):
        read(settings)


def test_an_agent_reads_insights_through_its_bus(make_settings, redis_url):
    """`MemoryBus.insights` returns what the command shows."""
    settings = make_settings(**QUICK)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("a", "b", model="m")
        bus.flush("logged", 10.0)
        assert [model.name for model in bus.insights(days=1).models] == ["m"]
