"""A fake Mem0 server, and providers on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.services.fake_mem0 import FakeMem0, fake_mem0
from mem0_opening import Opened
from memorybus_providers.base import ProviderConfig
from memorybus_providers.mem0 import Mem0ServerProvider


@pytest.fixture
def server() -> Iterator[FakeMem0]:
    """Serve while the test runs."""
    with fake_mem0() as server:
        yield server


@pytest.fixture
def opened(server: FakeMem0, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    made: list[Mem0ServerProvider] = []

    def make(**options: Any) -> Mem0ServerProvider:
        given = {"base_url": server.url, **options}
        provider = Mem0ServerProvider(ProviderConfig(name="m", home=tmp_path, options=given))
        made.append(provider)
        provider.open()
        return provider

    yield make
    server.gate.set()
    for provider in made:
        provider.shutdown()
