"""The shipped contract, run on the Postgres provider and a real server."""

import zlib
from pathlib import Path

import pytest
from helpers.processes.stalls import STANDSTILL
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestPostgres(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    @pytest.fixture(autouse=True)
    def _database(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        schema = f"s{zlib.crc32(str(tmp_path).encode())}"  # the same path, the same state
        options = {"url": self.url, "schema": schema}
        config = ProviderConfig(name="postgres", home=tmp_path, options=options)
        return registry.create("postgres", config)
