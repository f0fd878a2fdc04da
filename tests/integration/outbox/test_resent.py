"""What Redis lost is sent again, marked (G4), and kept as long again; no level tells of it (G1)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from helpers.processes.waiting import still, wait_until
from helpers.redis.clusters import with_replica
from helpers.redis.log import logged, publish
from helpers.redis.proxy import Proxy
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import environ, log_length
from helpers.stories.spools import abandoned, files_of, numbers_logged
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM, SystemClock
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.ids import new_id
from memorybus.log.entry import decode_entry
from memorybus.log.replication import Replication
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender, drain_orphans
from memorybus.outbox.spool import DELIVERED_SUFFIX, Spool
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OutgoingEvent
from memorybus.wire.codec import Decoder


def marks(settings: Settings) -> list[bool]:
    """Return, for each entry of the log, whether it was sent again."""
    return [event.resent for event in logged(settings)]


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


def test_a_lost_tail_comes_again_marked(redis_server, make_settings, caplog):
    """G1, G4: what Redis had and lost comes again marked; what is published afterwards does not.

    It is noticed on a living connection before the rows are deleted, and told of.
    """
    settings = make_settings(spool_keep=2.0)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 9)
        assert bus.flush("logged", 25)
        assert marks(settings) == [False] * 10
        redis_server.client().flushall()
        wait_until(lambda: len(marks(settings)) == 10, "all are sent again")
        publish(session, 9, 5)
        assert bus.flush("logged", 25)
    assert marks(settings) == [True] * 10 + [False] * 5
    assert "lost its tail" in caplog.text


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


@pytest.mark.parametrize("note", [None, "no number"], ids=["noted", "unreadable"])
def test_the_next_owner_knows_what_was_announced(redis_client, settings, spool, note):
    """G4: rows noted before their send, or with a damaged note, are in doubt; new ones are not."""
    put(spool, 0)
    sender_of(spool, redis_client, settings).send()
    redis_client.flushall()
    if note:
        spool.path.with_suffix(DELIVERED_SUFFIX).write_text(note)
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


KEPT: Any = {"spool_keep": 300.0}
"""Rows are in the spool as long as a test runs, and nobody compares for their deletion."""


def comes_back_empty(bus: MemoryBus, master: RedisServer, settings: Settings) -> None:
    """Kill a server and start it without its data; a recall's request is the first to notice."""
    master.kill()
    master.start()
    bus.session("s", warm=False).queue_prefetch("what did I say")
    asked = f"{settings.namespace}:want:*"
    wait_until(lambda: list(master.client().scan_iter(asked)), "the recall is asked for")


def is_emptied(_: MemoryBus, master: RedisServer, __: Settings) -> None:
    """Delete everything beneath living connections: nobody can notice."""
    master.client().flushall()


@pytest.mark.parametrize("level", ["logged", "replicated"])
@pytest.mark.parametrize("lose", [comes_back_empty, is_emptied])
def test_what_redis_lost_is_sent_again_before_a_flush_is_answered(
    make_redis, make_settings, lose, level
):
    """G1: a level is told of events that Redis has when it is asked, not of those it once had."""
    master, _ = with_replica(make_redis)
    settings = make_settings(url=master.url, **KEPT)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("a", "b")
        assert bus.flush(level, 25), bus.problem
        count = log_length(master.client(), settings)
        assert count == 2
        lose(bus, master, settings)
        assert bus.flush(level, 25), bus.problem
        assert log_length(master.client(), settings) == count


def test_a_spool_is_not_discarded_over_a_loss(make_redis, make_settings, monkeypatch):
    """G1: a dead process's spool stays if Redis lost it while a replica was being asked."""
    server = make_redis()
    settings = make_settings(url=server.url, spool_keep=0.0, compress_min_bytes=1 << 30)
    path = abandoned(settings, 3)
    client = connect_redis(settings)
    lost: list[bool] = []

    def is_replicated(_: Replication) -> bool:
        if not lost:
            lost.append(bool(server.client().flushall()))
        return True

    monkeypatch.setattr(Replication, "is_replicated", is_replicated)
    drain_orphans(files_of(settings), client, SendingContext(settings))
    assert lost
    assert path.exists()
    drain_orphans(files_of(settings), client, SendingContext(settings))
    assert numbers_logged(server.client(), settings) == [0, 1, 2]
    client.close()


KEEP = 300.0


class AheadClock(SystemClock):
    """The machine's clock, but for what a test has skipped."""

    ahead = 0.0

    def monotonic(self) -> float:
        """Return monotonic seconds, skipped ones included."""
        return SYSTEM.monotonic() + self.ahead


def wiped_while_away(server: RedisServer, bus: MemoryBus, clock: AheadClock) -> None:
    """Kill a server and start it without its data, `KEEP` after the bus has noticed."""
    server.kill()
    bus.session("s", warm=False).turn_started("noticed")
    wait_until(lambda: bus.problem, "the bus knows")
    clock.ahead += KEEP  # first: once the server is back, the sender is quick to mark rows anew
    server.start()


def wiped_beneath(server: RedisServer, _: MemoryBus, clock: AheadClock) -> None:
    """Delete everything; connections live on."""
    server.client().flushall()
    clock.ahead += KEEP


@pytest.mark.parametrize("lose", [wiped_while_away, wiped_beneath])
def test_what_is_sent_again_is_kept_as_long_again(make_redis, make_settings, lose):
    """G1: rows that Redis lost and got again stay in the spool for `spool_keep` from then on."""
    server, clock = make_redis(), AheadClock()
    settings = make_settings(url=server.url, spool_keep=KEEP)
    with MemoryBus(settings, clock=clock) as bus:
        flusher, spool = bus.publisher.flusher, bus.publisher.spool
        bus.session("s", warm=False).turn_completed("a", "b", ordinal=0)
        assert bus.flush("logged", 25)
        wait_until(lambda: flusher._retention._marks, "it is known when Redis had them")
        lose(server, bus, clock)
        assert bus.flush("logged", 25), bus.problem
        wait_until(lambda: log_length(server.client(), settings) >= 2, "they are sent again")
        wait_until(lambda: flusher._retention._marks, "and marked again")
        wait_until(still(lambda: spool.size, 1.2), "some rounds pass")
        assert spool._rows >= 2
        clock.ahead += KEEP
        wait_until(lambda: spool._rows == 0, "now they are deleted")


def test_a_confirmation_ends_with_the_server_that_had_it(make_redis, make_settings):
    """G1: `replicated` is not told of events that had to be sent again and nobody confirmed."""
    master, replica = with_replica(make_redis)
    settings = make_settings(url=master.url, spool_keep=KEEP)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("a", "b")
        assert bus.flush("replicated", 25)
        count = log_length(master.client(), settings)
        replica.kill()
        master.kill()
        master.start()
        assert bus.flush("logged", 25), bus.problem
        assert log_length(master.client(), settings) == count
        assert not bus.flush("replicated", 1.0)
