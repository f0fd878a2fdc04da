"""What `memorybus up` costs a machine while nobody asks anything of it.

A real `memorybus up` with two providers, in a directory of its own. Counted is its whole tree: the
command, the Redis server, the supervisor, the worker and what these start. After a while to settle
down its processor time is taken over a window, as percent of one core.

``idle_rss_mb`` is proportional: a page that n processes share counts 1/n for each, so that the sum
is what the machine pays (Linux's PSS; where there is none, the plain sum). ``idle_rss_plain_mb`` is
the sum of what `top` shows, in which shared libraries count once per process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from gauge import Figures, Size
from stage import WAIT_SECONDS

_SETTLE_S = 15.0
_WINDOW_S = 60.0
_QUICK_WINDOW_S = 20.0
_MB = 1 << 20


def measure(size: Size) -> Figures:
    """Return percent of a core, megabytes and the number of processes."""
    window = _QUICK_WINDOW_S if size.quick else _WINDOW_S
    with _up() as processes:
        time.sleep(_SETTLE_S)
        before, began = sum(map(_cpu_s, processes)), time.monotonic()
        time.sleep(window)
        spent = sum(map(_cpu_s, processes)) - before
        return {
            "idle_cpu_percent": 100 * spent / (time.monotonic() - began),
            "idle_rss_mb": sum(map(_proportional, processes)) / _MB,
            "idle_rss_plain_mb": sum(one.memory_info().rss for one in processes) / _MB,
            "idle_processes": float(len(processes)),
        }


@contextmanager
def _up() -> Iterator[list[psutil.Process]]:
    """Yield the processes of a `memorybus up` that is ready."""
    with tempfile.TemporaryDirectory(prefix="mb-idle-") as directory:
        environ = {k: v for k, v in os.environ.items() if not k.startswith("MEMORYBUS_")}
        environ |= {"MEMORYBUS_DATA_DIR": directory}
        command = [sys.executable, "-P", "-m", "memorybus", "up", "--json"]
        words = [*command, "--providers", "builtin,holographic"]
        with subprocess.Popen(
            words,
            cwd=directory,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=(Path(directory) / "up.log").open("wb"),
        ) as child:
            try:
                line = child.stdout.readline() if child.stdout else b""
                if not line:
                    raise RuntimeError((Path(directory) / "up.log").read_text())
                up = psutil.Process(child.pid)
                server = psutil.Process(json.loads(line)["server_pid"])
                yield list({up, server, *up.children(recursive=True)})
            finally:
                child.terminate()
                child.wait(WAIT_SECONDS)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _proportional(process: psutil.Process) -> int:
    memory = process.memory_full_info()
    return int(getattr(memory, "pss", memory.rss))
