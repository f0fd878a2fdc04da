"""A fake Mem0 server, and providers on it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memorybus_providers.base import ProviderConfig
from memorybus_providers.mem0 import Mem0ServerProvider

from helpers.services.fake_mem0 import FakeMem0, fake_mem0

Opened = Callable[..., Mem0ServerProvider]
"""Opens a provider; its options are the keywords."""


@pytest.fixture
def mem0_fake() -> Iterator[FakeMem0]:
    """Serve while the test runs."""
    with fake_mem0() as server:
        yield server


@pytest.fixture
def open_mem0(mem0_fake: FakeMem0, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    made: list[Mem0ServerProvider] = []

    def make(**options: Any) -> Mem0ServerProvider:
        given = {"base_url": mem0_fake.url, **options}
        provider = Mem0ServerProvider(ProviderConfig(name="m", home=tmp_path, options=given))
        made.append(provider)
        provider.open()
        return provider

    yield make
    mem0_fake.gate.set()
    for provider in made:
        provider.shutdown()
