"""Dead letters whose events the archive took over: they can still be shown, retried and edited."""

import json
from collections.abc import Iterator

import msgspec
import pytest
import redis
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, home, recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.archive.location import ARCHIVER
from memorybus.archive.tombstones import Tombstone
from memorybus.config.settings import to_environ
from memorybus.dead_letters.queue import EVENT_GONE, DeadLetters, LetterEvent, published_event
from memorybus.dead_letters.records import DeadLetter
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus.registry.homes import Home, Homes
from memorybus_console.cli.app import OK, main
from memorybus_console.cli.failures import FAILED
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.lanes.parking import Failure, ParkedKeys

P = SealedLog.PARTITION
EVE = Tombstone(id="t", query=Query(users=("eve",)), reason="she asked")


def letter_of(event: LoggedEvent) -> DeadLetter:
    """Return the dead letter of an event."""
    envelope, place = event.envelope, event.position
    return DeadLetter(envelope.id, place.entry, place.n, envelope.key, "TurnCompleted", "why", 1)


def letters(log: SealedLog) -> list[DeadLetter]:
    """Return a dead letter of every event of ours in the log."""
    events = History.from_settings(log.redis, log.settings).read(P, count=1000).events
    return [letter_of(event) for event in events]


def found(log: SealedLog, letter: DeadLetter, *, shown: bool = False) -> LetterEvent:
    """Return a letter's event as somebody who just came finds it."""
    history = History.from_settings(log.redis, log.settings)
    try:
        return published_event(history, P, letter, shown=shown)
    finally:
        history.close()


@pytest.fixture(name="log")
def _log(redis_client: redis.Redis, make_settings: MakeSettings) -> Iterator[SealedLog]:
    """Return a log of its own that archivers seal and trim at once."""
    made = SealedLog(make_settings(**QUICK | recorded("Keyed")))
    yield made
    made.redis.close()


def test_the_archive_has_what_the_log_has_no_more(log):
    """G6, G7: each letter's event is found: sealed and trimmed, at the seam, and in the log."""
    log.append(40)
    old = letters(log)
    run_once(log.settings)
    log.append(10)
    every = old + letters(log)[-10:]
    assert len(log.logged()) < 50, "trimmed"
    history = History.from_settings(log.redis, log.settings)
    for way in (every, every[::-1]):
        events = [published_event(history, P, letter).event for letter in way]
        ids = [event.envelope.id for event in events if event]
        assert ids == [letter.event_id for letter in way]
    history.close()
    assert [found(log, letter, shown=True).event is not None for letter in every] == [True] * 50


def test_another_event_at_its_place_is_not_taken(log):
    """G6: a letter never gets another event than its own, from wherever."""
    log.append(5)
    letter = msgspec.structs.replace(letters(log)[2], event_id="f" * 32)
    assert found(log, letter) == LetterEvent(None, EVENT_GONE)
    run_once(log.settings)
    assert found(log, letter) == LetterEvent(None, EVENT_GONE)
    nowhere = msgspec.structs.replace(letter, entry="1-0")
    assert found(log, nowhere) == LetterEvent(None, EVENT_GONE)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("shown", [True, False])
def test_what_is_forgotten_stays_gone(log, sealed, shown):
    """G6: a forgotten event is neither shown nor applied again, sealed or not, and that is said."""
    log.append(5)
    log.append(5, user="eve")
    every = letters(log)
    if sealed:
        run_once(log.settings)
    log.archive().forget(EVE)
    lookups = [found(log, letter, shown=shown) for letter in every]
    assert [one.event is not None for one in lookups] == [True] * 5 + [False] * 5
    assert "forgotten" in lookups[-1].why


def test_an_archive_out_of_reach_is_said(log):
    """G6, G7: who cannot reach the archive is told so, and not that the event is gone."""
    log.append(5)
    old = letters(log)
    run_once(log.settings)
    log.append(1)
    there = Home("a" * 32, "elsewhere", "/there", "1")
    Homes(log.redis, log.keys).move(ARCHIVER, there)
    away = found(log, old[0])
    assert away.event is None
    assert "the archive of this log is on elsewhere" in away.why
    new = letter_of(EventLog(log.redis, log.settings).read(P)[-1])
    assert found(log, new).event is not None, "the log has it"
    assert "is on elsewhere" in found(log, new, shown=True).why, "it may be forgotten"


@pytest.mark.timeout(60)
def test_a_letter_is_retried_and_edited_long_after(
    redis_client, make_settings, monkeypatch, capsys, flag, tmp_path
):
    """G6, G7: what the archive took over is shown, edited and applied in order, as if hot."""
    settings = make_settings(**QUICK | {"partitions": 1} | recorded("Keyed"))
    for name, value in to_environ(settings, {}).items():
        monkeypatch.setenv(name, value)
    bad = f"!permanent={flag} bad"
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", bad, "after", "later")
        assert bus.flush()
        wait_applied(redis_client, settings)
        run_once(settings)
        say(bus, "t", "new")
        assert bus.flush()
        run_once(settings)  # unless the worker's archiver is at work on it, which does it then
        wait_until(lambda: redis_client.xlen(Keys(settings.namespace).log(0)) == 1, "trimmed")
        desk = DeadLetters(settings)
        first, second, _ = [one.stored.letter.event_id for one in desk.letters([NAME])]
        desk.close()
        assert main(["dlq", "retry", first]) == FAILED
        assert "told to raise Permanent" in capsys.readouterr().err
        capsys.readouterr()
        assert main(["dlq", "show", second, "--json"]) == OK
        shown = json.loads(capsys.readouterr().out)
        assert (shown["published"]["event"]["user"], shown["missing"]) == ("after", None)
        file = tmp_path / "new.json"
        file.write_text(json.dumps(shown["published"]["event"] | {"user": "edited"}))
        assert main(["dlq", "edit", second, "--file", str(file), "--reason", "x", "--yes"]) == OK
        flag.unlink()
        assert main(["dlq", "retry", "--all"]) == OK
    assert texts(home(settings)) == ["new", bad, "edited", "later"]


def test_a_forgotten_letter_is_told(log, monkeypatch, capsys):
    """G6: `dlq show` shows nothing of a forgotten event, and says why."""
    for name, value in to_environ(log.settings, {}).items():
        monkeypatch.setenv(name, value)
    log.append(3, user="eve")
    scripts.run(log.redis, scripts.acquire(log.keys, P, NAME, "w", 60_000))
    epoch = int(log.redis.hget(log.keys.lane(P, NAME), "epoch"))
    events = History.from_settings(log.redis, log.settings).read(P).events
    ParkedKeys(log.redis, OwnedLane(log.keys, P, NAME, epoch)).put_aside(
        events[:1], Failure("no", 1)
    )
    run_once(log.settings)
    log.archive().forget(EVE)
    assert main(["dlq", "show", events[0].envelope.id]) == OK
    out = " ".join(capsys.readouterr().out.split())
    assert "the event is forgotten" in out
    assert "turn 0000" not in out
