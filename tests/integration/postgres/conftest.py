"""A Postgres provider on an empty database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memorybus_providers.base import ProviderConfig
from memorybus_providers.postgres import PostgresProvider


@pytest.fixture
def provider(postgres_url: str, tmp_path: Path) -> Iterator[PostgresProvider]:
    """Return an open provider over an empty database."""
    config = ProviderConfig(name="postgres", home=tmp_path, options={"url": postgres_url})
    provider = PostgresProvider(config)
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()
