"""redis-py without figures of its own for OpenTelemetry, which nothing here asks it for.

Where OpenTelemetry's SDK is installed (our extra `otel`), redis-py 8.1 loads it with itself: a
quarter of the time that a worker's modules take to load, and 3 MB of each process.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_SDK = "opentelemetry"


@contextmanager
def without_opentelemetry() -> Iterator[None]:
    """Let nothing load OpenTelemetry until the block ends, unless it is loaded already.

    For a process of our own: what imports it in the block finds it not installed.
    """
    if _SDK in sys.modules:
        yield
        return
    sys.modules[_SDK] = None  # type: ignore[assignment]  # not installed, for the import system
    try:
        yield
    finally:
        del sys.modules[_SDK]


def load_redis() -> None:
    """Load redis-py without OpenTelemetry; afterwards spans find it as ever."""
    with without_opentelemetry():
        import_module("redis")
