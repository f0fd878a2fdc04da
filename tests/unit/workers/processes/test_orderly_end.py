"""How a process ends: in order, at once, and never later than its grace."""

import queue
import threading
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from memorybus.config.settings import Settings
from memorybus_workers.processes.process import OrderlyEnd

FAR_SECONDS = 60.0


class Told:
    """A process that is told to end, and what it did then."""

    def __init__(self, grace: float, reserve: float = 0.0) -> None:
        self.did: list[str] = []
        self.left: queue.Queue[int] = queue.Queue()
        self.stopped = threading.Event()
        self.ending = OrderlyEnd(
            Settings(data_dir=Path("/nowhere"), grace=grace),
            self._stop,
            lambda: self.did.append("at once"),
            reserve=reserve,
            leave=self.left.put,
        )

    def _stop(self) -> None:
        self.did.append("stop")
        self.stopped.set()


def test_the_first_word_asks_for_an_orderly_end():
    """Told once, a process is asked to stop, once, and left to it."""
    told = Told(FAR_SECONDS)
    told.ending.request()
    assert told.stopped.wait(10)
    with pytest.raises(queue.Empty):
        told.left.get(timeout=0.1)
    assert told.did == ["stop"]


def test_the_second_word_ends_at_once(caplog):
    """Told twice, a process ends with 1 however busy it is, and says what becomes of its leases."""
    told = Told(FAR_SECONDS)
    told.ending.request()
    assert told.stopped.wait(10)
    told.ending.request()
    assert told.left.get(timeout=10) == 1
    assert told.did == ["stop", "at once"]
    wait_until(lambda: "leases expire by themselves within 10 s" in caplog.text, "it says so")


def test_the_last_words_come_first(monkeypatch):
    """What is said at the end is out before all is ended: the main thread may leave right then."""
    told = Told(FAR_SECONDS)
    monkeypatch.setattr(OrderlyEnd, "_log_reason", lambda *_: told.did.append("said"))
    told.ending.request()
    told.ending.request()
    assert told.left.get(timeout=10) == 1
    assert told.did == ["stop", "said", "at once"]


def test_an_orphan_is_not_told_twice():
    """A starter that says end and then goes has not said it twice."""
    told = Told(FAR_SECONDS)
    told.ending.request()
    told.ending.request_as_orphan()
    told.ending.request_as_orphan()
    assert told.stopped.wait(10)
    with pytest.raises(queue.Empty):
        told.left.get(timeout=0.1)


@pytest.mark.parametrize("reserve", [0.0, 0.1])
def test_grace_is_a_bound(reserve, caplog):
    """G10: what hangs past its grace is ended with 1, not waited for."""
    told = Told(0.05, reserve)
    told.ending.request_as_orphan()
    assert told.left.get(timeout=10) == 1
    assert told.did == ["stop", "at once"]
    wait_until(lambda: "not ended within 0.05 s" in caplog.text, "it says so")


def test_a_log_that_nobody_reads_holds_up_no_end(monkeypatch):
    """G10: the end comes in time although the last words find no reader."""
    hangs = threading.Event()
    monkeypatch.setattr(OrderlyEnd, "_log_reason", lambda *_: hangs.wait(FAR_SECONDS))
    told = Told(0.05)
    told.ending.request()
    assert told.left.get(timeout=10) == 1
    hangs.set()
    wait_until(lambda: told.did == ["stop", "at once"], "it did what it had to")
