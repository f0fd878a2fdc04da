"""The shipped contract, run on the Postgres provider and a real server."""

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.embedding_server import embedding_server
from helpers.services.pgbouncer_server import pgbouncer
from helpers.services.postgres_server import PostgresServer
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestPostgres(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL
    more: Mapping[str, str] = MappingProxyType({})

    @pytest.fixture(autouse=True)
    def _database(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        schema = f"s{zlib.crc32(str(tmp_path).encode())}"  # the same path, the same state
        options = {"url": self.url, "schema": schema, **self.more}
        config = ProviderConfig(name="postgres", home=tmp_path, options=options)
        return registry.create("postgres", config)


class TestPostgresWithAReader(TestPostgres):
    """The contract holds where recalls are a role's that sees the scopes asked for alone."""

    more = MappingProxyType({"reader": "contract_reader"})

    @pytest.fixture(autouse=True)
    def _role(self, postgres_server: PostgresServer) -> None:
        postgres_server.role("contract_reader")


@pytest.mark.servers
class TestPostgresBehindPgBouncer(TestPostgres):
    """The contract holds where each transaction gets another connection of a pool."""

    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: PostgresServer) -> Iterator[None]:
        with pgbouncer(postgres_server) as bouncer:
            self.url = bouncer.url(postgres_server.database())
            yield


class TestPostgresWithAReaderBehindPgBouncer(TestPostgresWithAReader, TestPostgresBehindPgBouncer):
    """A role and its scopes last for a transaction, and no other one meets them in the pool."""


class TestPostgresWithAnEmbedder(TestPostgres):
    """The contract holds with search by meaning, too: vectors are no part of the state."""

    @pytest.fixture(autouse=True)
    def _embedder(self) -> Iterator[None]:
        with embedding_server() as server:
            self.more = {"embedder": server.address, "embedder_model": "m"}
            yield
