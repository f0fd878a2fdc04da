"""How a test opens a provider on the fake server."""

from collections.abc import Callable

from memorybus_providers.hindsight import HindsightProvider

Opened = Callable[..., HindsightProvider]
"""Opens a provider; its options are the keywords."""
