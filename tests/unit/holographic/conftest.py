"""A fresh provider for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import opened


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[HolographicProvider]:
    """Return an open provider over an empty database."""
    with opened(tmp_path) as provider:
        yield provider
