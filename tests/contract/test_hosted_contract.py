"""A hosted Hermes plugin keeps the provider contract, process boundary and all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_hermes import python_of
from helpers.hosted.hosted import ended, hosted
from memorybus.events import TurnCompleted
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.base import MemoryProvider
from memorybus_providers.contract import ProviderContract


@pytest.mark.timeout(240)  # it starts dozens of processes
class TestHosted(ProviderContract):
    """The recorder of the tests, loaded by the fake Hermes."""

    deadline = 30.0  # a recall may start a process, on a busy machine too

    @pytest.fixture(autouse=True)
    def _children_end(self, tmp_path: Path) -> Iterator[None]:
        with ended([tmp_path]):
            yield

    def remember(self, provider: MemoryProvider, text: str) -> TurnCompleted:
        """Return a turn: the recorder recalls nothing else."""
        return TurnCompleted(user=text, assistant="Noted.", ordinal=0)

    def make_provider(self, tmp_path: Path) -> HostedHermesProvider:
        """Return an instance; its path is too long for a unix socket."""
        # Unused for less than that they do not end: none does between its start and its first call.
        options: dict[str, Any] = {"settle": "threads", "idle": 20.0}
        return hosted("recorder", tmp_path / "home", python_of(tmp_path), **options)
