"""Vanished producers are forgotten; one that comes back loses and doubles nothing (G1, G2, G10)."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.spools import files_of, numbers_in, put
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.ids import new_id
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender
from memorybus.redis import scripts
from memorybus.redis.facts import read_server_ms
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OutgoingEvent
from memorybus.testing import FakeClock

WINDOW = 3_600.0
PAST = round(WINDOW * 1000) + 60_000
"""Milliseconds after which one that rests is forgotten."""

HEARD = ":heard"
"""How the field ends that says when a producer was heard."""

LOOKED_AT = 20
"""Producers that each newcomer looks at."""


@pytest.fixture(name="settings")
def _settings(make_settings: MakeSettings, redis_client: redis.Redis) -> Settings:
    return make_settings(dedupe_window=WINDOW, partitions=1, compress_min_bytes=1 << 30)


@pytest.fixture(name="key")
def _key(settings: Settings) -> str:
    return Keys(settings.namespace).producers(0)


def vanished(client: redis.Redis, key: str, count: int, ago_ms: int, rests: str) -> set[bytes]:
    """Leave producers that were heard so long ago; return their names."""
    heard = read_server_ms(client) - ago_ms
    names = [new_id() for _ in range(count)]
    client.hset(key, mapping=dict.fromkeys(names, "7"))
    client.hset(key, mapping={f"{name}{HEARD}": f"{heard}{rests}" for name in names})
    return {name.encode() for name in names}


def newcomers(client: redis.Redis, settings: Settings, count: int) -> set[bytes]:
    """Let so many producers send their first event; return their names."""
    keys, half = Keys(settings.namespace), round(WINDOW * 500)
    names = [new_id() for _ in range(count)]
    calls = [
        scripts.append(
            keys,
            0,
            name,
            0,
            [OutgoingEvent(1, name.encode(), b"d", b"x")],
            window_ms=half,
            max_ids=9_999,
        )
        for name in names
    ]
    for reply in scripts.run_many(client, calls):
        assert isinstance(reply, scripts.Appended), reply
    return {name.encode() for name in names}


def names_in(client: redis.Redis, key: str) -> set[bytes]:
    """Return the producers that are remembered."""
    return {name for name in client.hkeys(key) if not name.endswith(HEARD.encode())}


def grow_older(client: redis.Redis, key: str, ms: int) -> None:
    """Let so much time pass for what is remembered."""
    fields: Any = client.hgetall(key)
    for name, value in fields.items():
        if name.endswith(HEARD.encode()):
            heard, *rests = value.decode().split()
            client.hset(key, name, " ".join([str(int(heard) - ms), *rests]))


# -- who is forgotten -----------------------------------------------------------------------------


def test_vanished_producers_are_forgotten(redis_client, settings, key):
    """G10: 10,000 vanished producers are gone after newcomers looked at each; nobody else is."""
    vanished(redis_client, key, 10_000, PAST, " rests")
    kept = vanished(redis_client, key, 50, PAST, "")  # they have rows to send again
    kept |= vanished(redis_client, key, 50, 0, " rests")  # they were heard just now
    kept |= newcomers(redis_client, settings, 2 * 10_000 // LOOKED_AT)
    assert names_in(redis_client, key) == kept


def test_who_has_rows_to_send_again_is_known_for_thirty_windows(redis_client, settings, key):
    """G10: a producer that vanished with rows in its spool is forgotten too, much later."""
    vanished(redis_client, key, 1_000, 30 * PAST, "")
    kept = newcomers(redis_client, settings, 2 * 1_000 // LOOKED_AT)
    assert names_in(redis_client, key) == kept


def test_a_look_costs_the_same_however_many_there_are(redis_client, settings, key):
    """G10: one newcomer looks at some producers, not at all of them."""
    vanished(redis_client, key, 10_000, PAST, " rests")
    newcomers(redis_client, settings, 1)
    assert 9_800 < len(names_in(redis_client, key)) < 10_001


def test_an_agent_says_when_it_has_nothing_to_send_again(redis_client, settings, key):
    """G10: once its rows are deleted an agent may be forgotten; with its next event it may not."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("a", "b")
        name = bus.publisher.spool.producer

        def rests() -> bool:
            return b"rests" in (redis_client.hget(key, f"{name}{HEARD}") or b"")

        wait_until(rests, "it says that it rests")
        session.turn_completed("c", "d", ordinal=1)
        assert bus.flush("logged", 25)
        wait_until(rests, "and again, when that is deleted as well")


# -- who comes back -------------------------------------------------------------------------------


class Producer:
    """A producer whose process and time are the test's."""

    def __init__(self, client: redis.Redis, settings: Settings, key: str) -> None:
        self._client, self._settings, self._key = client, settings, key
        self._clock = FakeClock(read_server_ms(client))
        self.published = 0
        self._start()

    def _start(self) -> None:
        self.spool = files_of(self._settings, self._clock).claim()
        self.sender = Sender(self.spool, self._client, SendingContext(self._settings, self._clock))
        self.sender.resync()

    def restart(self) -> None:
        """Die, and go on with the same spool."""
        self.spool.close()
        self._start()

    def publish(self) -> None:
        """Spool an event, a second after the last."""
        self._clock.advance(1.0)
        put(self.spool, self.published)
        self.published += 1

    def send(self) -> None:
        while self.sender.send():
            pass
        self.sender.catch_up()

    def delete(self) -> None:
        """Delete what Redis has."""
        self.sender.delete_upto(self.sender.cursor)

    def away(self) -> None:
        """Be silent for so long that who rests, and ids, are forgotten, while others come."""
        self._clock.advance(PAST / 1000)
        grow_older(self._client, self._key, PAST)
        self._client.delete(*Keys(self._settings.namespace).seen(0))
        newcomers(self._client, self._settings, 1)

    def logged(self) -> list[int]:
        """Return the numbers of its events in the log."""
        found: Any = self._client.xrange(Keys(self._settings.namespace).log(0))
        bodies = [fields.get(b"e") or fields[b"r"] for _, fields in found]
        return [int(body.rstrip(b"x")) for body in bodies if body != b"x"]


@pytest.fixture(name="producer")
def _producer(redis_client: redis.Redis, settings: Settings, key: str) -> Iterator[Producer]:
    producer = Producer(redis_client, settings, key)
    yield producer
    producer.spool.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_forgotten_producer_is_no_redis_that_lost_its_tail(
    producer, redis_client, key, restarted, caplog
):
    """G1, G2: it goes on with its new events; nothing is told as lost, nothing comes again."""
    for _ in range(3):
        producer.publish()
    producer.send()
    producer.delete()
    producer.away()
    assert producer.spool.producer.encode() not in names_in(redis_client, key)
    if restarted:
        producer.restart()
    producer.publish()
    producer.send()
    assert producer.logged() == [0, 1, 2, 3]
    assert (producer.sender.counts.lost, producer.sender.counts.rewinds) == (0, 0)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_redis_that_lost_its_tail_is_no_forgotten_producer(producer, redis_client):
    """G1: what was sent and not deleted is sent again after a loss, however long it was silent."""
    for _ in range(3):
        producer.publish()
    producer.send()
    redis_client.flushall()
    producer.away()
    producer.restart()
    producer.send()
    assert producer.logged() == [0, 1, 2]


STEPS = st.lists(st.sampled_from(["publish", "send", "delete", "away", "restart"]), max_size=25)


@examples(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whenever_it_is_silent_nothing_is_lost_or_doubled(redis_client, settings, key, steps):
    """G1, G2, G10: forgotten or not, whatever it did before, each event is in the log once."""
    redis_client.flushall()
    producer = Producer(redis_client, settings, key)
    try:
        for step in steps:
            getattr(producer, step)()
        producer.send()
        assert producer.logged() == list(range(producer.published))
        assert producer.sender.counts.lost == 0
        producer.delete()
        assert numbers_in(producer.spool) == []
    finally:
        producer.spool.discard()
