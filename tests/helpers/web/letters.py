"""Dead letters: those that wait, and one that no worker had to refuse."""

from contextlib import closing
from typing import Any

import msgspec
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import DeadLetter
from memorybus.events import TurnCompleted
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys


def letters(settings: Settings, provider: str) -> list[str]:
    """Return the ids of the events that are a provider's dead letters."""
    with closing(DeadLetters(settings)) as desk:
        return [dead.stored.letter.event_id for dead in desk.letters([provider])]


def put_aside(settings: Settings, text: str) -> None:
    """Write a dead letter of the newest turn as a worker would, in the words of a text."""
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    log = EventLog(redis, settings)
    event = next(
        one
        for p in range(settings.partitions)
        for one in log.read(p)
        if isinstance(one.envelope.event, TurnCompleted)
    )
    place, envelope = event.position, event.envelope
    letter = DeadLetter(
        event_id=envelope.id,
        entry=place.entry,
        n=place.n,
        key=envelope.key,
        type=text,
        reason=text,
        attempts=3,
        session=text,
        first_at=envelope.at,
        last_at=envelope.at,
        trace=text,
        worker=text,
    )
    record: Any = {"r": msgspec.json.encode(letter)}
    redis.xadd(keys.dead(place.partition, "builtin"), record)
    redis.hset(keys.parked(place.partition, "builtin"), envelope.key, f"{place.entry} 1")
    redis.close()
