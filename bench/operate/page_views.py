"""What the views of events cost with a long history and many dead letters, over real HTTP.

Sessions of 250 events each, 64 of them at a time side by side, all sealed but the last rounds, as
an archiver leaves them. One provider has refused the first event of many keys. Each view is asked
for later than a look is kept, so that each asks Redis anew. ``page_view_ms`` is the slowest of the
views' medians.
"""

import re
import statistics
import time
from contextlib import closing
from typing import Any

import msgspec
from filling import Filler
from gauge import Figures, Size
from history.past import TEXTS, parts, seal
from history.search import AT_ONCE, SESSION_EVENTS
from memorybus.config.settings import Settings
from memorybus.dead_letters.records import DeadLetter
from memorybus.log.stream import EventLog
from memorybus_console.operations import journal
from memorybus_console.operations.events.search import EventSearch, SearchRequest
from stage import Stage

from operate.page import Operator, served

_PROVIDERS = 5
_NOOP = "bench.providers:NoopProvider"
_REFUSES = "noop0"
_LETTERS = 10_000
_OF_A_KEY = 4
_ROUNDS = 12
"""Rounds that are sealed together; the log holds those that came after the last such."""

_REQUESTS = 7
_TRACE = "Traceback (most recent call last):\n" + '  File "provider.py", line 10, in f\n' * 15


def measure(size: Size) -> Figures:
    """Return milliseconds of each view."""
    with Stage() as stage:
        settings = stage.with_providers({f"noop{n}": _NOOP for n in range(_PROVIDERS)})
        names = fill(stage, size.past)
        park(stage)
        return asked(settings, names) | searched(settings, names)


def fill(stage: Stage, count: int) -> list[str]:
    """Write the history, and seal all but its last rounds; return the sessions' names."""
    a_round = SESSION_EVENTS * AT_ONCE
    names: list[str] = []
    EventLog(stage.redis, stage.settings).open()  # filled from outside, it has no birth else
    filler = Filler(stage, ["none"], texts=TEXTS)
    for number, part in enumerate(parts(count, a_round)):
        fresh = [f"session-{number:04d}-{one:02d}" for one in range(AT_ONCE)]
        filler.turn_to(fresh)
        filler.fill(part)
        names += fresh
        if number % _ROUNDS == _ROUNDS - 1:
            seal(stage)
    stage.settle()
    return names


def park(stage: Stage) -> None:
    """Put letters aside as a worker would, spread over the lanes."""
    keys, partitions = stage.keys, stage.settings.partitions
    with stage.redis.pipeline(transaction=False) as pipe:
        for number in range(_LETTERS):
            key = f"session:{number // _OF_A_KEY:016x}:s"
            partition = number // _OF_A_KEY % partitions
            letter = DeadLetter(
                event_id=f"{number:032x}",
                entry=f"{1_700_000_000_000 + number}-0",
                n=number + 1,
                key=key,
                type="TurnCompleted",
                reason=f"the backend refused row {number}: a value is too long for its column",
                attempts=0 if number % _OF_A_KEY else 3,
                session=f"s-{number}",
                first_at=1_700_000_000_000,
                last_at=1_700_000_000_000,
                trace=_TRACE,
            )
            record: Any = {"r": msgspec.json.encode(letter)}
            pipe.xadd(keys.dead(partition, _REFUSES), record)
            pipe.hset(keys.parked(partition, _REFUSES), key, f"{letter.entry} {_OF_A_KEY}")
        pipe.execute()


def asked(settings: Settings, names: list[str]) -> Figures:
    """Return what each view takes, in milliseconds, and the slowest."""
    with served(settings) as operator:
        page = operator.ask("/events")[1]
        event = re.findall(r'href="(/events/p[^"]*)"', page)[0]
        letter = re.findall(rf'href="(/dead/{_REFUSES}/[^"]*)"', operator.ask("/dead")[1])[0]
        views = {
            "events": "/events",
            "events_of_old_session": f"/events?session={names[0]}",
            "events_nobody_said": "/events?q=nobody+ever+said+this",
            "event": event,
            "tail": "/tail",
            "sessions": "/sessions",
            "dead_letters": "/dead",
            "dead_letter": letter,
            "dead_letters_plan": f"/dead/retry?all=1&provider={_REFUSES}",
        }
        took = {name: _median(operator, path) for name, path in views.items()}
    return {f"page_{name}_ms": ms for name, ms in took.items()} | {
        "page_view_ms": max(took.values())
    }


def searched(settings: Settings, names: list[str]) -> Figures:
    """Return what whole searches take: the newest, a session of long ago, words nobody said."""
    return {
        "search_newest_ms": _search(settings, SearchRequest(), 20),
        "search_old_session_ms": _search(settings, SearchRequest(session=names[0]), 20),
        "search_everything_s": _search(settings, SearchRequest(words=("nobody said",)), 1) / 1000,
    }


def _search(settings: Settings, wanted: SearchRequest, limit: int) -> float:
    history = journal.open_history(settings)
    with closing(history):
        began = time.perf_counter()
        EventSearch(history, wanted).run(limit)
        return (time.perf_counter() - began) * 1000


def _median(operator: Operator, path: str) -> float:
    return statistics.median(operator.ask(path)[0] for _ in range(_REQUESTS))
