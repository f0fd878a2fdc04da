"""A fake Hindsight server, and providers on it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memorybus_providers.base import ProviderConfig
from memorybus_providers.hindsight import HindsightProvider

from helpers.services.fake_hindsight import FakeHindsight, fake_hindsight

Opened = Callable[..., HindsightProvider]
"""Opens a provider; its options are the keywords."""


@pytest.fixture
def hindsight_fake() -> Iterator[FakeHindsight]:
    """Serve while the test runs."""
    with fake_hindsight() as server:
        yield server


@pytest.fixture
def open_hindsight(hindsight_fake: FakeHindsight, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    made: list[HindsightProvider] = []

    def make(**options: Any) -> HindsightProvider:
        given = {"base_url": hindsight_fake.url, **options}
        provider = HindsightProvider(ProviderConfig(name="hs", home=tmp_path, options=given))
        made.append(provider)
        provider.open()
        return provider

    yield make
    hindsight_fake.gate.set()
    for provider in made:
        provider.shutdown()
