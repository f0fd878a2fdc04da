"""Providers of services, opened on a server with some options, and closed when the test is over."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
from memorybus.clock import SYSTEM, Clock
from memorybus_providers.base import MemoryProvider, ProviderConfig, Spend
from memorybus_providers.hindsight import HindsightProvider
from memorybus_providers.mem0 import Mem0ServerProvider

from helpers.services.fake_hindsight import FakeHindsight, fake_hindsight
from helpers.services.fake_mem0 import FakeMem0, fake_mem0

P_co = TypeVar("P_co", bound=MemoryProvider, covariant=True)


class Opener(Protocol[P_co]):
    """Opens instances; their options are the keywords."""

    def __call__(self, clock: Clock = SYSTEM, **options: Any) -> P_co:
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

        def make(clock: Clock = SYSTEM, **options: Any) -> P_co:
            return stack.enter_context(opened(kind, home, clock, **{**given, **options}))

        yield make


@pytest.fixture
def hindsight_fake() -> Iterator[FakeHindsight]:
    with fake_hindsight() as server:
        yield server


@pytest.fixture
def open_hindsight(
    hindsight_fake: FakeHindsight, tmp_path: Path
) -> Iterator[Opener[HindsightProvider]]:
    with opener(HindsightProvider, tmp_path, base_url=hindsight_fake.url) as make:
        yield make


@pytest.fixture
def mem0_fake() -> Iterator[FakeMem0]:
    with fake_mem0() as server:
        yield server


@pytest.fixture
def open_mem0(mem0_fake: FakeMem0, tmp_path: Path) -> Iterator[Opener[Mem0ServerProvider]]:
    with opener(Mem0ServerProvider, tmp_path, base_url=mem0_fake.url) as make:
        yield make
