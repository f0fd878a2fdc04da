"""The plugin that Hermes loads: `register` registers the provider, a subclass of Hermes's own ABC.

Hermes is imported only here and in `post_setup`, which Hermes itself calls: so the running version
is imported, whichever it is. Other code uses the names below: an agent that expects a
`MemoryManager`, as Hermes does, gets its managers from `memory_managers`.
"""

from typing import Any

from memorybus_hermes.plugin.manager import MemoryManager, memory_managers
from memorybus_hermes.plugin.provider import HermesMemory

__all__ = ["HermesMemory", "MemoryManager", "memory_managers", "memory_provider", "register"]


def register(ctx: Any) -> None:
    ctx.register_memory_provider(memory_provider())


def memory_provider() -> Any:
    """Return a new instance that Hermes's own checks accept as a memory provider.

    Raises:
        ImportError: this process is not Hermes.
    """
    from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found,unused-ignore]

    return type("MemoryBusMemoryProvider", (HermesMemory, MemoryProvider), {})()
