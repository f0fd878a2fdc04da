"""A worker gives memory back now and then."""

import platform

from memorybus.testing import FakeClock
from memorybus_workers.processes.heap import (
    TRIM_INTERVAL_SECONDS,
    Heap,
    find_trimmer,
    share_one_heap,
)


def test_memory_goes_back_now_and_then():
    """G10: once in so many seconds, however often it is looked."""
    clock = FakeClock()
    times: list[float] = []
    heap = Heap(clock, lambda: times.append(clock.monotonic()))
    begin = clock.monotonic()
    for _ in range(int(TRIM_INTERVAL_SECONDS) * 3):
        clock.advance(1.0)
        heap.trim_if_due()
    assert [round(at - begin) for at in times] == [
        TRIM_INTERVAL_SECONDS,
        TRIM_INTERVAL_SECONDS * 2,
        TRIM_INTERVAL_SECONDS * 3,
    ]


def test_asking_the_c_library_is_safe():
    """Whatever library it is, nothing is raised."""
    find_trimmer()()


def test_glibc_takes_the_settings_that_keep_its_heap_in_one_piece():
    """Where the C library is glibc, both settings are taken."""
    assert share_one_heap() is (platform.libc_ver()[0] == "glibc")
