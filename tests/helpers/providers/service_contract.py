"""The shipped contract for a provider of a service, on a server for each of its tests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest
from memorybus.ids import derived_id
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract

from helpers.processes.stalls import STANDSTILL


class Served(Protocol):
    """A server with an address."""

    @property
    def url(self) -> str:
        """Where it listens."""


class ServiceContract(ProviderContract):
    """Each home has names of its own on the server.

    Attributes:
        kind: the provider's.
        server: serves while a block runs.
        options: beside address and prefix.
    """

    deadline = ProviderContract.deadline + STANDSTILL
    kind: ClassVar[str]
    server: ClassVar[Callable[[], AbstractContextManager[Served]]]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with type(self).server() as server:
            self.url = server.url
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        """Return an unopened instance."""
        prefix = f"t{derived_id(str(tmp_path))[:12]}"
        options = {"base_url": self.url, "prefix": prefix, **self.options}
        return registry.create(
            self.kind, ProviderConfig(name=self.kind, home=tmp_path, options=options)
        )
