"""What is known of events ends with a loss: how long Redis has had them, who has confirmed them."""

import pytest
from helpers.processes.waiting import still, wait_until
from helpers.redis.clusters import with_replica
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import log_length
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM, SystemClock

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
