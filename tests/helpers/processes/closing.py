"""Opens spools and closes each while a thread reads it: ``python -m helpers.processes.closing``.

In a process of its own, since SQLite ends a process whose thread it finds in a closed connection.
"""

import contextlib
import sys
import tempfile
import threading
from pathlib import Path

from memorybus.clock import SYSTEM
from memorybus.errors import SpoolCorrupt
from memorybus.ids import new_id
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.spool import Spool

_ROWS = 50
_TIMES = 60


def _read(spool: Spool, begun: threading.Event) -> None:
    with contextlib.suppress(SpoolCorrupt):  # so says a closed file
        while True:
            spool.rows_after(0, _ROWS, 1 << 20)
            begun.set()


def main() -> None:
    """Do so; print how often."""
    with tempfile.TemporaryDirectory() as place:
        files = SpoolFiles(Path(place), new_id, clock=SYSTEM, max_bytes=1 << 30, disk_reserve=0)
        for _ in range(_TIMES):
            spool, begun = files.claim(), threading.Event()
            for number in range(_ROWS):
                spool.append(0, number.to_bytes(16, "big"), b"d" * 8, b"x" * 100)
            reader = threading.Thread(target=_read, args=(spool, begun))
            reader.start()
            begun.wait()
            spool.close()
            reader.join()
    sys.stdout.write(f"{_TIMES}\n")


if __name__ == "__main__":
    main()
