"""The shipped contract, run on the holographic provider."""

from pathlib import Path

from helpers.processes.stalls import STANDSTILL
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestHolographic(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return registry.create("holographic", ProviderConfig(name="holographic", home=tmp_path))
