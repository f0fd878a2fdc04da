"""Who lives is told by heartbeats that change, whatever the server's clock does."""

from memorybus.registry.roster import WorkerInfo
from memorybus.testing import FakeClock
from memorybus_workers.membership.presence import Heartbeats

NOW = 1_700_000_000_000
HOUR = 3_600_000
SILENCE = 2.5


class Heard:
    """What one worker hears."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pulses = Heartbeats(self.clock, 1.0)

    def silent(self, now_ms: int, **beats: int) -> set[str]:
        """Hear heartbeats; return those that are silent."""
        workers = [WorkerInfo(name, "h", 1, 0, 0, (), at) for name, at in beats.items()]
        self.pulses.note(workers, now_ms)
        return {one.id for one in self.pulses.silent(workers, SILENCE)}


def test_an_old_heartbeat_is_silent_at_first_sight():
    """A worker that died before we came gets no lanes; nor does one of a time that is not yet."""
    heard = Heard()
    assert heard.silent(NOW, fresh=NOW - 900, dead=NOW - 2_600, odd=NOW + HOUR) == {"dead", "odd"}


def test_the_servers_clock_may_jump():
    """G5: a jump by an hour, forth or back, kills nobody who beats on."""
    for jump in (HOUR, -HOUR):
        heard = Heard()
        assert heard.silent(NOW, a=NOW, b=NOW - 500) == set()
        heard.clock.advance(1.0)
        assert heard.silent(NOW + jump, a=NOW + jump, b=NOW - 500) == set()
        heard.clock.advance(1.0)
        assert heard.silent(NOW + jump + 1_000, a=NOW + jump + 1_000, b=NOW + jump) == set()


def test_who_stops_to_beat_is_silent_in_time():
    """G5: a dead worker's heartbeat stays as it is; its silence is counted by our own clock."""
    heard = Heard()
    assert heard.silent(NOW, a=NOW - 500) == set()
    heard.clock.advance(1.9)
    assert heard.silent(NOW + 1_900, a=NOW - 500) == set()
    heard.clock.advance(0.2)
    assert heard.silent(NOW + 2_100, a=NOW - 500) == {"a"}
    assert heard.silent(NOW + 2_100, a=NOW + 2_000) == set()
