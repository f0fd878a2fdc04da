"""The methods that an author supplies to the contract, and those that its rules share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from memorybus.events import AnyEvent, MemoryWritten, TurnCompleted

from memorybus_providers.base import MemoryProvider, TransactionalProvider
from memorybus_providers.contract.samples import EVERYONE, handles_event, recall_context


class ContractBroken(AssertionError):
    """A provider does not do what it declares; the message says what was expected and seen."""


def require(condition: object, message: str) -> None:
    """Fail with `message` unless `condition` is true."""
    if not condition:
        raise ContractBroken(message)


class Rules(ABC):
    """The base class of all groups of rules: methods that authors supply, and that tests use.

    Attributes:
        deadline: seconds that a prefetch may take in these tests.
        verbatim: whether recall returns what was remembered word for word; False for backends
            that derive their memories with a model.
    """

    deadline: ClassVar[float] = 2.0
    verbatim: ClassVar[bool] = True

    @abstractmethod
    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        """Return an unopened instance; the same path must mean the same state.

        A local provider's home is at or below ``tmp_path``.
        """

    def remember(self, provider: MemoryProvider, text: str) -> AnyEvent:
        """Return an event after which its user, and nobody else, can recall `text`."""
        if handles_event(provider, MemoryWritten):
            return MemoryWritten(action="add", store="user", content=text)
        return TurnCompleted(user=text, assistant="Noted.", ordinal=0)

    def state(self, provider: MemoryProvider, query: str) -> object:
        """Return everything that a recall finds; it is compared to see whether anything changed."""
        recollections = provider.prefetch(query, recall_context(EVERYONE, self.deadline))
        return sorted((r.text, r.session, r.at) for r in recollections)

    @contextmanager
    def opened(self, tmp_path: Path) -> Iterator[MemoryProvider]:
        """Open an instance and shut it down at the end."""
        provider = self.make_provider(tmp_path)
        provider.open()
        try:
            yield provider
        finally:
            provider.shutdown()

    @contextmanager
    def opened_transactional(self, tmp_path: Path) -> Iterator[TransactionalProvider]:
        """Open an instance, or skip the test if it is not transactional."""
        with self.opened(tmp_path) as provider:
            if not isinstance(provider, TransactionalProvider):
                pytest.skip(f"not claimed: delivery is {provider.delivery!r}")
            yield provider

    @contextmanager
    def opened_recalling(self, tmp_path: Path) -> Iterator[MemoryProvider]:
        """Open an instance, or skip the test if it recalls nothing, or not word for word."""
        with self.opened(tmp_path) as provider:
            if not (provider.capabilities.recall and self.verbatim):
                pytest.skip("not claimed: no verbatim recall")
            yield provider
