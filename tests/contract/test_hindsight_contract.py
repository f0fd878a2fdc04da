"""The shipped contract, run on the Hindsight provider and a fake of its server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.fake_hindsight import fake_hindsight
from memorybus.ids import derived_id
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestHindsight(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with fake_hindsight() as server:
            self.url = server.url
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        prefix = f"t{derived_id(str(tmp_path))[:12]}"
        options = {"base_url": self.url, "prefix": prefix, **self.options}
        config = ProviderConfig(name="hindsight", home=tmp_path, options=options)
        return registry.create("hindsight", config)


class TestHindsightBySession(TestHindsight):
    """The contract holds with several turns in one document, too."""

    options: ClassVar[dict[str, Any]] = {"turns_per_document": 10}


class TestHindsightQueued(TestHindsight):
    """The contract holds where Hindsight queues what it is given, too."""

    options: ClassVar[dict[str, Any]] = {"queued": True}
