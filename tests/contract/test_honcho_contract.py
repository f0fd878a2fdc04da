"""The shipped contract, run on the Honcho provider with its real client against a fake server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.honcho_server import honcho_server
from memorybus.ids import text_digest
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract

pytest.importorskip("honcho", reason="needs the extra honcho")


class TestHoncho(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with honcho_server() as server:
            self.options = {"base_url": server.url, "dialectic_every": 0}
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        options = {**self.options, "prefix": f"p{text_digest(str(tmp_path))}"}
        config = ProviderConfig(name="honcho", home=tmp_path, options=options)
        return registry.create("honcho", config)
