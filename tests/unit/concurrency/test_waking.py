"""Waking a thread, whatever interrupts the one that does."""

import signal
import threading
import time
from types import FrameType

import pytest
from helpers.processes.interrupts import at_every_instruction
from helpers.processes.waiting import wait_until
from memorybus.concurrency import wakeup
from memorybus.concurrency.wakeup import StopSignal, Waiters, Wake

INTERRUPTS = 60


class Interrupted(Exception):
    """What a signal raises, as Ctrl-C does."""


@pytest.mark.slow(reason="real signals against a busy thread")
def test_an_interrupt_leaves_it_usable():
    """G9: wherever a signal interrupts the one who wakes, both threads go on."""
    wake, armed, hits, done = Wake(), False, 0, threading.Event()
    main = threading.get_ident()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise Interrupted

    def signals() -> None:
        while not done.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=signals)
    sender.start()
    try:
        while hits < INTERRUPTS:
            try:
                armed = True
                while True:
                    wake.set()
                    wake.wait(0.0)
            except Interrupted:
                hits += 1
    finally:
        done.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    other = threading.Thread(target=wake.set)
    other.start()
    other.join(20)
    assert not other.is_alive()


@pytest.mark.slow(reason="forty thousand real waits")
def test_a_wait_ends_however_short_it_was():
    """G9: a time-out that has passed before the wait began is over, also the first time."""
    begin = time.monotonic()
    for _ in range(20_000):
        Wake().wait(1e-6)
        StopSignal().wait(1e-6)
    assert time.monotonic() - begin < 60


def test_a_word_before_the_wait_counts_once():
    """Whoever looks later is woken at once, and only once however often it was said."""
    wake, clock = Wake(), threading.Event()
    wake.set()
    wake.set()
    waiting = threading.Thread(target=lambda: (wake.wait(60.0), clock.set()))
    waiting.start()
    assert clock.wait(20)
    waiting.join()
    wake.wait(0.0)  # nothing is left, and it does not block


def test_an_end_is_said_for_good():
    """What was told to end waits no more, however often it looks."""
    ending = StopSignal()
    ending.wait(0.0)
    assert not ending.is_set()
    ending.set()
    for _ in range(3):
        ending.wait(60.0)
    assert ending.is_set()


def test_who_waits_looks_when_told():
    """Every waiter is told; each looks for itself, and goes on when it is true or time is up."""
    waiters, seen = Waiters(), [0]
    ends = [threading.Event() for _ in range(3)]

    def wait(end: threading.Event) -> None:
        if waiters.wait_for(lambda: seen[0] == 2, 60.0):
            end.set()

    for end in ends:
        threading.Thread(target=wait, args=(end,), daemon=True).start()
    wait_until(lambda: len(waiters._waiting) == 3, "all wait")
    seen[0] = 1
    waiters.wake_all()
    assert not any(end.is_set() for end in ends)
    seen[0] = 2
    waiters.wake_all()
    assert all(end.wait(20) for end in ends)
    assert not waiters.wait_for(lambda: False, 0.01)
    wait_until(lambda: not waiters._waiting, "nobody is kept")


@pytest.mark.parametrize("act", ["wait_for", "set", "wait", "end"])
def test_an_interrupt_stops_no_other_thread(act):
    """G9: wherever an interrupt falls, who tells and who waits afterwards goes on."""
    waiters, ending = Waiters(), StopSignal()
    wake = Wake()
    acts = {
        "wait_for": lambda: waiters.wait_for(lambda: False, 0.0),
        "set": wake.set,
        "wait": lambda: wake.wait(0.0),
        "end": ending.set,
    }

    def others() -> None:
        waiters.wake_all()
        waiters.wait_for(lambda: True, 1.0)
        wake.set()
        wake.wait(60.0)
        ending.set()
        ending.wait(60.0)

    for steps in at_every_instruction(wakeup, acts[act]):
        other = threading.Thread(target=others, daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive(), f"interrupted at instruction {steps}"
