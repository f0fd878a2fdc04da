"""A fake Mem0 server, and providers on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memorybus_providers.mem0 import Mem0ServerProvider

from helpers.providers.service_opening import Opener, opener
from helpers.services.fake_mem0 import FakeMem0, fake_mem0

Opened = Opener[Mem0ServerProvider]


@pytest.fixture
def mem0_fake() -> Iterator[FakeMem0]:
    """Serve while the test runs."""
    with fake_mem0() as server:
        yield server


@pytest.fixture
def open_mem0(mem0_fake: FakeMem0, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    with opener(Mem0ServerProvider, tmp_path, base_url=mem0_fake.url) as make:
        yield make
        mem0_fake.gate.set()
