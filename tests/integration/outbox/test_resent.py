"""An event that Redis lost and gets again says so, for a lane may have applied it before (G4)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.redis.proxy import Proxy
from helpers.stories.scenario import environ, partition
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.ids import new_id
from memorybus.log.entry import decode_entry
from memorybus.log.stream import EventLog
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender
from memorybus.outbox.spool import DELIVERED_SUFFIX, Spool
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OutgoingEvent
from memorybus.wire.codec import Decoder


def turns(session: Session, first: int, count: int) -> None:
    """Publish numbered turns."""
    for number in range(first, first + count):
        session.turn_completed(f"turn {number}", "ok", ordinal=number)


def marks(settings: Settings, session: str = "s") -> list[bool]:
    """Return, for each entry of a session's partition, whether it was sent again."""
    client = connect_redis(settings)
    found = EventLog(client, settings).read(partition(settings, session), count=100_000)
    client.close()
    return [event.resent for event in found]


def put(spool: Spool, number: int) -> int:
    """Append an event whose id is its number to the first partition."""
    return spool.append(0, number.to_bytes(16, "big"), b"d" * 8, b"x")


def sent_fields(client: redis.Redis, settings: Settings) -> list[bool]:
    """Return, for each entry of the first partition, whether it is marked."""
    return [b"r" in fields for _, fields in client.xrange(Keys(settings.namespace).log(0))]


@pytest.fixture(name="spool")
def _spool(settings: Settings) -> Iterator[Spool]:
    spool = SpoolFiles.from_settings(settings, new_id, SYSTEM).claim()
    yield spool
    spool.close()


def reopened(spool: Spool, settings: Settings) -> Spool:
    """Return the same spool as its next owner finds it."""
    spool.close()
    return SpoolFiles.from_settings(settings, new_id, SYSTEM).claim()


def sender_of(spool: Spool, client: redis.Redis, settings: Settings) -> Sender:
    """Return a sender that knows what Redis has."""
    sender = Sender(spool, client, SendingContext(settings))
    sender.resync()
    return sender


# -- the mark -------------------------------------------------------------------------------------


def test_only_what_may_have_been_here_is_marked(redis_client, namespace):
    """G4: bodies up to the sequence handed over before are named `r`, later ones `e`."""
    keys = Keys(namespace)
    events = [OutgoingEvent(n, f"id{n}".encode(), b"d", b"x") for n in (1, 2, 3)]
    call = scripts.append(keys, 0, "p", 0, events, window_ms=1_000, max_ids=9, possibly_delivered=2)
    scripts.run(redis_client, call)
    fields = [fields for _, fields in redis_client.xrange(keys.log(0))]
    assert fields[1] == {b"n": b"2", b"r": b"x"}
    assert fields[2] == {b"n": b"3", b"e": b"x"}


@pytest.mark.parametrize(("name", "said"), [(b"e", False), (b"r", True)])
def test_an_entry_says_that_it_came_again(name, said):
    """G4: the name of its body tells an event that came again; older workers read both."""
    body = (Path(__file__).parents[2] / "golden/v1/TurnCompleted.msgpack").read_bytes()
    found = decode_entry(0, "1-1", [b"n", b"7", name, body], Decoder())
    assert found is not None
    assert found.resent is said
    assert found.position.n == 7
    assert type(found.envelope.event).__name__ == "TurnCompleted"


# -- what a living agent sends again --------------------------------------------------------------


def test_a_lost_tail_comes_again_marked(redis_server, make_settings):
    """G4: what Redis had and lost comes again marked; what is published afterwards does not."""
    settings = make_settings(spool_keep=2.0)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        turns(session, 0, 9)
        assert bus.flush("logged", 25)
        assert marks(settings) == [False] * 10
        redis_server.client().flushall()
        wait_until(lambda: len(marks(settings)) == 10, "all are sent again")
        turns(session, 9, 5)
        assert bus.flush("logged", 25)
    assert marks(settings) == [True] * 10 + [False] * 5


def test_a_send_whose_reply_was_lost_is_in_doubt(redis_server, settings, spool, short_dir):
    """G4: rows that Redis may have taken count as taken, when it has them no more afterwards."""
    proxy = Proxy(redis_server.socket, short_dir / "proxy")
    client = redis.Redis.from_url(proxy.url, retry=None)
    sender = sender_of(spool, client, settings)
    put(spool, 0)
    proxy.drop_reply_after(b"EVALSHA")
    with pytest.raises(LogUnavailable):
        sender.send()
    redis_server.client().flushall()
    put(spool, 1)
    sender_of(spool, redis_server.client(), settings).send()
    assert sent_fields(redis_server.client(), settings) == [True, False]
    client.close()
    proxy.close()


def test_what_redis_refused_is_not_marked(make_redis, make_settings):
    """G4: an event that Redis had no memory for was never there: no provider is asked for it."""
    server = make_redis()
    settings = make_settings(url=server.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        server.client().config_set("maxmemory", "1")
        turns(session, 0, 5)
        wait_until(lambda: "maxmemory" in bus.problem, "the problem is named")
        server.client().config_set("maxmemory", "0")
        assert bus.flush("logged", 25)
    assert marks(settings) == [False] * 6


# -- across owners of a spool ----------------------------------------------------------------------


def test_a_dead_agents_lost_events_come_again_marked(redis_server, make_settings, spawn):
    """G4: what a killed agent had sent, and Redis lost, is marked when the next agent sends it."""
    settings = make_settings(spool_keep=60.0)
    child = spawn(
        *("-m", "helpers.stories.scenario", "--count", "5", "--flush", "10", "--hold"),
        env=environ(settings),
    )
    child.wait_output("holding")
    child.kill()
    assert marks(settings) == [False] * 6
    redis_server.client().flushall()
    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: len(marks(settings)) == 6, "the spool was adopted")
        assert bus.flush("logged", 25)
    assert marks(settings) == [True] * 6


def test_what_was_never_sent_is_not_marked(redis_server, make_settings, spawn):
    """G4: the backlog of an agent that died before it reached Redis is in no doubt."""
    settings = make_settings()
    redis_server.freeze()
    try:
        child = spawn(
            "-m", "helpers.stories.scenario", "--count", "5", "--hold", env=environ(settings)
        )
        child.wait_output("holding")
        child.kill()
    finally:
        redis_server.thaw()
    with MemoryBus.connect(settings) as bus:
        assert bus.flush("logged", 25)
    assert marks(settings) == [False] * 6


def test_the_next_owner_knows_what_was_announced(redis_client, settings, spool):
    """G4: rows noted before their send are in doubt for the next owner, and new ones are not."""
    put(spool, 0)
    sender_of(spool, redis_client, settings).send()
    redis_client.flushall()
    again = reopened(spool, settings)
    put(again, 1)
    sender_of(again, redis_client, settings).send()
    assert sent_fields(redis_client, settings) == [True, False]
    again.close()


def test_a_spool_without_the_note_is_in_doubt(redis_client, settings, spool):
    """G4: where nobody can know what was sent, every row that was there is marked."""
    put(spool, 0)
    sender_of(spool, redis_client, settings).send()
    redis_client.flushall()
    spool.path.with_suffix(DELIVERED_SUFFIX).write_text("no number")
    again = reopened(spool, settings)
    put(again, 1)
    sender_of(again, redis_client, settings).send()
    assert sent_fields(redis_client, settings) == [True, False]
    again.close()


def test_saved_rows_are_in_doubt(redis_client, settings, spool):
    """G4: rows read from a damaged file may have been sent: their new sequences cannot say."""
    put(spool, 0)
    fresh = SpoolFiles.from_settings(settings, new_id, SYSTEM).replace(spool, "damaged")
    put(fresh, 1)
    sender_of(fresh, redis_client, settings).send()
    assert sent_fields(redis_client, settings) == [True, False]
    fresh.close()
