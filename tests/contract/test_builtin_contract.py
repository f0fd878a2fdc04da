"""The shipped contract, run on the builtin provider."""

from pathlib import Path

from helpers.processes.stalls import STANDSTILL
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestBuiltin(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return registry.create("builtin", ProviderConfig(name="builtin", home=tmp_path))
