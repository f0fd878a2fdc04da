"""A worker gives memory back now and then."""

import platform
import subprocess
import sys

from memorybus.testing import FakeClock
from memorybus_workers.processes.heap import EVERY, Heap, find_trimmer, share_one_heap


def test_memory_goes_back_now_and_then() -> None:
    """G10: once in so many seconds, however often it is looked."""
    clock = FakeClock()
    times: list[float] = []
    heap = Heap(clock, lambda: times.append(clock.monotonic()))
    begin = clock.monotonic()
    for _ in range(int(EVERY) * 3):
        clock.advance(1.0)
        heap.trim_if_due()
    assert [round(at - begin) for at in times] == [EVERY, EVERY * 2, EVERY * 3]


def test_asking_the_c_library_is_safe() -> None:
    """Whatever library it is, nothing is raised."""
    find_trimmer()()


def test_glibc_takes_the_settings_that_keep_its_heap_in_one_piece() -> None:
    """Where the C library is glibc, both settings are taken."""
    assert share_one_heap() is (platform.libc_ver()[0] == "glibc")


def test_what_is_there_at_the_beginning_is_spared() -> None:
    """Objects that a worker has when it begins are not looked at by the garbage collector."""
    program = (
        "import gc; from memorybus_workers.processes.heap import freeze_heap; freeze_heap(); "
        "print(gc.get_freeze_count() > len(gc.get_objects()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"True\n"


def test_a_new_process_collects_more_seldom_than_python_does() -> None:
    """Only when many more objects were made does a collection begin; it is not switched off."""
    program = (
        "import gc; from memorybus_workers.processes.heap import collect_seldom; "
        "before = gc.get_threshold(); collect_seldom(); after = gc.get_threshold(); "
        "print(gc.isenabled(), after[0] >= 5 * before[0] > 0, after[1:] == before[1:])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"True True True\n"
