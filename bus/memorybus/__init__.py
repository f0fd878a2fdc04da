"""memorybus: the event-sourced memory bus for AI agents.

``from memorybus import MemoryBus`` is all an agent needs; see `memorybus.agent.client`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorybus.agent.aio import AsyncMemoryBus
    from memorybus.agent.client import MemoryBus

__all__ = ["AsyncMemoryBus", "MemoryBus"]


def __getattr__(name: str) -> Any:
    """Import the facade when it is asked for: a provider needs only the small modules."""
    if name == "MemoryBus":
        from memorybus.agent.client import MemoryBus

        return MemoryBus
    if name == "AsyncMemoryBus":
        from memorybus.agent.aio import AsyncMemoryBus

        return AsyncMemoryBus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
