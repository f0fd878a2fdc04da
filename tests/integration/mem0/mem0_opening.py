"""How a test opens a provider on the fake server."""

from collections.abc import Callable

from memorybus_providers.mem0 import Mem0ServerProvider

Opened = Callable[..., Mem0ServerProvider]
"""Opens a provider; its options are the keywords."""
