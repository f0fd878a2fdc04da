"""Entries whose bytes are no envelope: they wait alone, and hold up nobody (G6, G7)."""

import json
from typing import Any

import msgspec
import pytest
import redis
from helpers.archive.past import read_all
from helpers.archive.sealed_log import QUICK
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.unreadable import UNREADABLE, append, envelope_bytes
from helpers.stories.scenario import (
    PATIENT,
    backlog,
    home,
    partition,
    say,
    spread_sessions,
    thread_worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.archive.location import archive_of
from memorybus.config.settings import Settings, to_environ
from memorybus.dead_letters.queue import DeadLetters, LetterEvent, LocatedLetter
from memorybus.events import UnknownEvent
from memorybus.health.finding import Finding
from memorybus.health.monitor import read_status
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query
from memorybus.query.ranges import Plan
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus_console.cli.app import main
from memorybus_workers.archiving.archiver import run_once

BOTH: Any = {
    "providers": ("one", "two"),
    "provider": {
        "one": {"kind": "helpers.providers.recording:Transactional"},
        "two": {"kind": "helpers.providers.recording:KeyedSide"},
    },
}
BAD = tuple(UNREADABLE.values())
pytestmark = pytest.mark.timeout(120)


def fill(client: redis.Redis, settings: Settings) -> int:
    """Publish to two partitions; meanwhile append what nobody can read to one, and return it."""
    first, second = spread_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        for text in ("before", "after"):
            say(bus, first, text)
            say(bus, second, f"other {text}")
            assert bus.flush("logged", 10)
            if text == "before":
                append(client, settings, partition(settings, first), *BAD)
    return partition(settings, first)


def critical(settings: Settings) -> list[Finding]:
    """Return what is badly wrong, as `status` tells it."""
    return [alarm for alarm in read_status(settings).alarms if alarm.severity == "critical"]


def passed(client: redis.Redis, settings: Settings) -> bool:
    """Say whether both providers have passed everything."""
    return all(backlog(client, settings, name) == 0 for name in settings.providers)


def letters(settings: Settings) -> dict[str, list[tuple[LocatedLetter, LetterEvent]]]:
    """Return the dead letters of both providers with what they refer to."""
    desk = DeadLetters(settings)
    try:
        return {
            name: [(dead, desk.event(dead)) for dead in desk.letters([name])]
            for name in settings.providers
        }
    finally:
        desk.close()


def raws(found: list[LoggedEvent]) -> list[bytes]:
    events = [event.envelope.event for event in found]
    return [event.raw for event in events if isinstance(event, UnknownEvent)]


def assert_parked(settings: Settings) -> None:
    """Each unreadable entry is a dead letter of each provider, with its bytes.

    Each has a key of its own, and calls side by side put keys aside in any order.
    """
    for name, found in letters(settings).items():
        assert len(found) == len(BAD), name
        found.sort(key=lambda one: one[0].stored.letter.n)
        shown = [published.event for _, published in found if published.event]
        assert raws(shown) == list(BAD), name
        assert all("CorruptEnvelope" in dead.stored.letter.reason for dead, _ in found)


@pytest.mark.parametrize("sealed", [False, True], ids=["log", "archive"])
def test_unreadable_entries_wait_alone(redis_client, make_settings, sealed):
    """G6, G7: from log and archive alike they are parked with their bytes, all else is applied."""
    settings = make_settings(**QUICK, **PATIENT, **BOTH)
    fill(redis_client, settings)
    if sealed:
        assert run_once(settings).errors == {}
    with thread_worker(msgspec.structs.replace(settings, seal_after=1e9)):
        wait_until(lambda: passed(redis_client, settings), "both providers passed all", 45)
    for name in settings.providers:
        found = texts(home(settings, name))
        assert sorted(found) == ["after", "before", "other after", "other before"]
        assert found.index("before") < found.index("after")
    assert_parked(settings)
    assert critical(settings) == []


def test_the_archive_keeps_unreadable_entries_as_they_are(redis_client, make_settings):
    """G7: sealed and compacted, the history reads as the log did: bytes, order, numbers."""
    settings = make_settings(**QUICK, **BOTH)
    place = fill(redis_client, settings)
    client = connect_redis(settings)
    history = History.from_settings(client, settings)
    asked = (Query(), Query(types=("TurnCompleted",)), Query(sessions=("s",)))

    def read() -> list[list[LoggedEvent]]:
        return [read_all(history, 500, place, plan=Plan(query=query)) for query in asked]

    before = read()
    assert raws(before[0]) == list(BAD)
    assert run_once(settings).errors == {}
    assert redis_client.xlen(Keys(settings.namespace).log(place)) == 1
    assert read() == before
    archive = archive_of(client, settings)
    assert archive is not None
    segments = archive.segments(place)
    archive.replace(place, segments)
    assert read() == before
    assert list(history.scan(Query())) == list(reversed(list(history.scan_backward(Query()))))
    history.close()
    client.close()


def test_commands_show_unreadable_entries_safely(redis_client, make_settings, monkeypatch, capsys):
    """G6: listings and `dlq show` say what such an entry is, and print its bytes as hex only."""
    settings = make_settings(partitions=1, **BOTH)
    escape = b"\x28\x1b[2J\x9b31m"
    append(redis_client, settings, 0, escape, envelope_bytes(v=0))
    with thread_worker(settings):
        wait_until(lambda: passed(redis_client, settings), "both providers passed all")
    for name, value in to_environ(settings, {}).items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> str:
        capsys.readouterr()
        assert main([*words]) == 0
        return capsys.readouterr().out

    event = letters(settings)["one"][0][0].stored.letter.event_id
    shown = ("dlq", "show", event, "--provider", "one")
    for words in (("events", "ls"), ("dlq", "ls"), shown, ("sessions", "tree")):
        for said in (run(*words), run(*words, "--json")):
            assert "\x1b[2J" not in said
            assert "\x9b" not in said
    told = json.loads(run(*shown, "--json"))
    assert told["published"]["event"]["raw"] == escape.hex()
    assert "CorruptEnvelope" in told["reason"]


@pytest.mark.parametrize("odd", [{"n": "1"}, {"e": "x"}, {"n": "0", "e": "x"}, {"x": "9", "y": ""}])
def test_an_entry_without_its_fields_takes_no_number(redis_client, make_settings, odd):
    """G6, G7: an entry of others is no event, though it holds an envelope or a number."""
    settings = make_settings(**QUICK, **BOTH)
    keys, place = Keys(settings.namespace), partition(settings, "s")
    valid = {"x": "2", "y": envelope_bytes()}
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "before")
        assert bus.flush("logged", 10)
        for fields in (odd, valid):
            redis_client.xadd(keys.log(place), fields)
        say(bus, "s", "after")
        assert bus.flush("logged", 10)
    with thread_worker(msgspec.structs.replace(settings, seal_after=1e9)):
        for name in settings.providers:
            wait_until(lambda name=name: texts(home(settings, name)) == ["before", "after"], "all")
            assert not redis_client.exists(keys.dead(place, name))
    assert run_once(settings).errors == {}
    head = redis_client.hget(keys.state(place), "n")
    assert redis_client.hget(keys.state(place), "sealed") == head
    assert critical(settings) == []
