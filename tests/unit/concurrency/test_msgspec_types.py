"""Several threads decode into types that msgspec has not met before."""

import signal
import subprocess
import sys
import threading

import msgspec
import pytest
from helpers.processes.forked import in_child
from memorybus.msgspec_types import prepared

DECODING = """
import sys, threading
import msgspec
from memorybus.msgspec_types import prepared

sys.setswitchinterval(1e-6)

def with_structs_in_it():
    within = [msgspec.defstruct("Within", [("n", int | None, None)]) for _ in range(6)]
    fields = [(f"s{n}", kind | None, None) for n, kind in enumerate(within)]
    return msgspec.defstruct("Whole", [*fields, ("last", int | None, None)])

def decode(kind, begin):
    begin.wait()
    assert msgspec.json.decode(b'{"last": 2}', type=prepared(kind)).last == 2

for _ in range(200):
    kind, begin = with_structs_in_it(), threading.Barrier(4)
    threads = [threading.Thread(target=decode, args=(kind, begin)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.slow(reason="starts a process")
def test_threads_decode_into_a_new_type_at_once():
    """Four threads that meet a struct of structs together all get it, and the process lives."""
    done = subprocess.run(
        [sys.executable, "-c", DECODING], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.slow(reason="forks processes")
def test_a_forked_child_decodes():
    """A fork leaves no child that waits for a thread which was preparing a type in the parent."""
    over = threading.Event()

    def prepare_in_time() -> None:
        signal.alarm(30)
        prepared(int)

    def prepare() -> None:
        while not over.is_set():
            prepared(msgspec.defstruct("New", [("n", int | None, None)]))

    thread = threading.Thread(target=prepare)
    thread.start()
    try:
        for _ in range(20):
            in_child(prepare_in_time)
    finally:
        over.set()
        thread.join()
