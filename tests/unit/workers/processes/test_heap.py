"""The threads of a worker share one heap."""

import platform

from memorybus_workers.processes.process import share_one_heap


def test_glibc_takes_the_settings_that_keep_its_heap_in_one_piece():
    """Where the C library is glibc, both settings are taken."""
    assert share_one_heap() is (platform.libc_ver()[0] == "glibc")
