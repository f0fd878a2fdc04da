"""What Hermes loads: `register` gives it the provider as a subclass of its own ABC.

Hermes is imported here and in `post_setup` alone, when it calls: then it is there, whatever version
it is. Others use the names below: an agent with Hermes's seam for a `MemoryManager` gets its
managers of `memory_managers`.
"""

from typing import Any

from memorybus.surfaces.hermes.plugin.manager import MemoryManager, memory_managers
from memorybus.surfaces.hermes.plugin.provider import HermesMemory

__all__ = ["HermesMemory", "MemoryManager", "memory_managers", "memory_provider", "register"]


def register(ctx: Any) -> None:
    """Register the memory provider with a plugin context of Hermes."""
    ctx.register_memory_provider(memory_provider())


def memory_provider() -> Any:
    """Return a new instance that Hermes's own checks take for one of its providers.

    Raises:
        ImportError: this process is no Hermes.
    """
    from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found,unused-ignore]

    return type("MemoryBusMemoryProvider", (HermesMemory, MemoryProvider), {})()
