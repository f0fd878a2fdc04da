"""What most tests of Postgres begin with."""

import pytest
from memorybus_providers.postgres import PostgresProvider


@pytest.fixture
def provider(postgres_provider: PostgresProvider) -> PostgresProvider:
    """Return an open provider over an empty database."""
    return postgres_provider
