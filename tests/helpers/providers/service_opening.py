"""Providers of services, opened on a server with some options, and closed when the test is over."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from memorybus.clock import SYSTEM, Clock
from memorybus_providers.base import MemoryProvider, ProviderConfig, Spend

P_co = TypeVar("P_co", bound=MemoryProvider, covariant=True)


class Opener(Protocol[P_co]):
    """Opens instances; their options are the keywords."""

    def __call__(self, **options: Any) -> P_co:
        """Return an open one."""


@contextmanager
def opened(
    kind: Callable[[ProviderConfig], P_co],
    home: Path,
    clock: Clock = SYSTEM,
    spend: Spend | None = None,
    **options: Any,
) -> Iterator[P_co]:
    """Open an instance while the block runs."""
    config = ProviderConfig(name="service", home=home, options=options, clock=clock, spend=spend)
    provider = kind(config)
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()


@contextmanager
def opener(
    kind: Callable[[ProviderConfig], P_co], home: Path, **given: Any
) -> Iterator[Opener[P_co]]:
    """Yield a function that opens instances, with options beside or instead of the given ones."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(opened(kind, home, **{**given, **options}))
