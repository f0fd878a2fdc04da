"""A fake Hindsight server, and providers on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memorybus_providers.hindsight import HindsightProvider

from helpers.providers.service_opening import Opener, opener
from helpers.services.fake_hindsight import FakeHindsight, fake_hindsight

Opened = Opener[HindsightProvider]


@pytest.fixture
def hindsight_fake() -> Iterator[FakeHindsight]:
    """Serve while the test runs."""
    with fake_hindsight() as server:
        yield server


@pytest.fixture
def open_hindsight(hindsight_fake: FakeHindsight, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    with opener(HindsightProvider, tmp_path, base_url=hindsight_fake.url) as make:
        yield make
        hindsight_fake.gate.set()
