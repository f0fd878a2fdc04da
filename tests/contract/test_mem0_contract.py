"""The shipped contract, run on the provider for Mem0's server and a fake of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.fake_mem0 import fake_mem0
from memorybus.ids import derived_id
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestMem0Server(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with fake_mem0() as server:
            self.url = server.url
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        prefix = f"t{derived_id(str(tmp_path))[:12]}"
        options = {"base_url": self.url, "prefix": prefix, **self.options}
        config = ProviderConfig(name="mem0", home=tmp_path, options=options)
        return registry.create("mem0-server", config)


class TestMem0ServerVerbatim(TestMem0Server):
    """The contract holds where nothing is inferred, too."""

    options: ClassVar[dict[str, Any]] = {"infer": False}
