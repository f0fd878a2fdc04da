"""The shipped contract, run on the holographic provider."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.embedding_server import embedding_server
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestHolographic(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return registry.create("holographic", ProviderConfig(name="holographic", home=tmp_path))


class TestHolographicWithAnEmbedder(TestHolographic):
    """The contract holds with search by meaning, too: vectors are no part of the state."""

    @pytest.fixture(autouse=True)
    def _embedder(self) -> Iterator[None]:
        with embedding_server() as server:
            self.options = {"embedder": server.address, "embedder_model": "m"}
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        config = ProviderConfig(name="holographic", home=tmp_path, options=self.options)
        return registry.create("holographic", config)
