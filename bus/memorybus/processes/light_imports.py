"""Lets a process start and end fast: redis-py without OpenTelemetry, little garbage collection.

redis-py 8.1 imports OpenTelemetry's SDK where it is installed (our extra `otel`), for metrics that
the bus does not use. That import takes a quarter of the time in which a worker loads its modules,
and 3 MB of each process.
"""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_SDK = "opentelemetry"


@contextmanager
def without_opentelemetry() -> Iterator[None]:
    """Hide OpenTelemetry from imports until the block ends, unless it is loaded already.

    An import of it in the block fails as if it were not installed. Use it only in workers
    and commands: in an agent, another thread may import OpenTelemetry meanwhile.
    """
    if _SDK in sys.modules:
        yield
        return
    sys.modules[_SDK] = None  # type: ignore[assignment]  # not installed, for the import system
    try:
        yield
    finally:
        _reveal()


def load_redis() -> None:
    """Load redis-py without OpenTelemetry. Later imports of OpenTelemetry work as usual."""
    with without_opentelemetry():
        import_module("redis")


def reveal_opentelemetry() -> None:
    """Let imports of OpenTelemetry work from now on, for a library that cannot do without it."""
    import_module("redis")
    _reveal()


def _reveal() -> None:
    if sys.modules.get(_SDK, sys) is None:
        del sys.modules[_SDK]


_COLLECTION_THRESHOLD = 50_000
"""A collection begins after so many objects were made and not freed; Python's own number is 700."""


def collect_seldom() -> None:
    """Collect garbage less often; a new process calls this before it loads its modules.

    With Python's own threshold the collector took an eighth of the time of loading them, and ran
    several hundred times a second while a lane caught up.
    """
    gc.set_threshold(_COLLECTION_THRESHOLD)


def freeze_heap() -> None:
    """Exclude all present objects from garbage collection, since modules and their objects stay."""
    gc.freeze()


def end_without_collecting() -> None:
    """Let this process end without a last collection: the system takes all its memory at once."""
    atexit.register(freeze_heap)
