"""A process that forks: while its bus connects, and with threads that all publish at once."""

import subprocess
import sys
import threading

import pytest
from helpers.processes.forked import in_child
from helpers.processes.threads import side_by_side
from helpers.processes.waiting import wait_until
from helpers.redis.log import logged
from memorybus.agent.client import MemoryBus
from memorybus.errors import SpoolError
from memorybus.events import TurnCompleted

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

_IMPORTING = """
import importlib.abc, os, sys, threading
from pathlib import Path
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

class Watch(importlib.abc.MetaPathFinder):
    begun = threading.Event()
    def find_spec(self, name, path, target=None):
        if name == sys.argv[3]:
            self.begun.set()
            threading.Event().wait(1.5)  # a busy machine: longer than a fork waits for SQLite

sys.meta_path.insert(0, Watch())
bus = MemoryBus.connect(Settings(url=sys.argv[1], data_dir=Path(sys.argv[2])))
bus.session("w", warm=False).queue_prefetch("What is it?")  # needs rq
assert Watch.begun.wait(20)
pid = os.fork()
bus.session("s", warm=False).turn_completed("a", "b")
sent = bus.flush("logged", 20)
line = f"{'parent' if pid else 'child'} {sent} {bus.problem}".strip() + os.linesep
os.write(1, line.encode())  # whole: `print` may write its words one by one
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
bus.close()
"""


@pytest.mark.parametrize("module", ["redis", "rq", "memorybus.outbox.sender"])
def test_a_fork_while_the_flusher_imports(settings, module):
    """G1, G9: a child that is forked while the bus connects sends its events like any other."""
    shown = subprocess.run(
        [sys.executable, "-c", _IMPORTING, settings.redis_url, settings.data_dir, module],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert sorted(shown.stdout.splitlines()) == ["child True", "parent True"], shown.stderr


THREADS = 4
TURNS = 20


def test_threads_of_a_child_share_its_spool(settings):
    """G2, G3: threads that all publish first after a fork do so through one spool, in order."""
    names = [f"t{number}" for number in range(THREADS)]
    with MemoryBus.connect(settings) as bus:
        bus.session("parent", warm=False)
        assert bus.flush("logged", 30)

        def child() -> None:
            together = threading.Barrier(THREADS)

            def publish(name: str) -> None:
                together.wait()
                session = bus.session(name, warm=False)
                for number in range(TURNS):
                    session.turn_completed(f"{number}", "", ordinal=number)

            side_by_side(publish, zip(names, strict=True))
            assert bus.flush("logged", 30)
            assert len(bus.publisher._inherited) == 1
            assert len(bus.sessions._inherited) == 1
            assert len(list(settings.spool_dir.glob("*.db"))) == 2
            bus.close()

        in_child(child)
    for name in names:
        events = [one.envelope.event for one in logged(settings, name)]
        numbers = [event.ordinal for event in events if isinstance(event, TurnCompleted)]
        assert numbers == list(range(TURNS))


def test_a_child_counts_its_own_events(settings, make_settings):
    """G1: what a child asks about its events concerns its own spool, not its parent's file."""
    with MemoryBus.connect(make_settings(url="redis://127.0.0.1:1")) as bus:
        session = bus.session("s", warm=False)
        wait_until(lambda: bus.problem, "Redis is known to be away")
        assert bus.unsent == 1, "its beginning"

        def child() -> None:
            assert bus.unsent == 0
            assert session.turn_started("x").level == "spooled"
            assert bus.unsent == 1

        in_child(child)
        bus.close(0.1)

        def late() -> None:
            with pytest.raises(SpoolError, match="closed"):
                session.turn_started("y")

        in_child(late)
