"""The shipped contract, run on the webhook provider against a receiver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.services.webhook_receiver import WebhookReceiver, webhook_receiver
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract
from memorybus_providers.webhook import WebhookProvider


class TestWebhook(ProviderContract):
    @pytest.fixture(autouse=True)
    def _receiver(self, tmp_path: Path) -> Iterator[None]:
        with webhook_receiver() as receiver:
            self.receiver: WebhookReceiver = receiver
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        """Return an unopened instance."""
        options = self.receiver.options(tmp_path)
        return WebhookProvider(ProviderConfig(name="webhook", home=tmp_path, options=options))

    def state(self, provider: MemoryProvider, query: str) -> object:
        """Return what the receiver took, each id once, as a receiver is told to keep it."""
        return sorted(self.receiver.kept)
