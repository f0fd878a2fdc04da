"""A fake Hindsight server, and providers on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.services.fake_hindsight import FakeHindsight, fake_hindsight
from hindsight_opening import Opened
from memorybus_providers.base import ProviderConfig
from memorybus_providers.hindsight import HindsightProvider


@pytest.fixture
def server() -> Iterator[FakeHindsight]:
    """Serve while the test runs."""
    with fake_hindsight() as server:
        yield server


@pytest.fixture
def opened(server: FakeHindsight, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    made: list[HindsightProvider] = []

    def make(**options: Any) -> HindsightProvider:
        given = {"base_url": server.url, **options}
        provider = HindsightProvider(ProviderConfig(name="hs", home=tmp_path, options=given))
        made.append(provider)
        provider.open()
        return provider

    yield make
    server.gate.set()
    for provider in made:
        provider.shutdown()
