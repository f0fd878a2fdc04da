"""Waking a thread, whatever interrupts the one that does."""

import signal
import threading
from types import FrameType

from memorybus.waking import Wake

INTERRUPTS = 60


class Interrupted(Exception):
    """What a signal raises, as Ctrl-C does."""


def test_an_interrupt_leaves_it_usable() -> None:
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
    other.join(5)
    assert not other.is_alive()


def test_a_word_before_the_wait_counts_once() -> None:
    """Whoever looks later is woken at once, and only once however often it was said."""
    wake, clock = Wake(), threading.Event()
    wake.set()
    wake.set()
    waiting = threading.Thread(target=lambda: (wake.wait(60.0), clock.set()))
    waiting.start()
    assert clock.wait(5)
    waiting.join()
    wake.wait(0.0)  # nothing is left, and it does not block
