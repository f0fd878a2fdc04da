"""memorybus: the event-sourced memory bus for AI agents.

These names are the public API, and docs/agents.md says what each is for. Beside them others may
use the modules `clock`, `errors`, `events`, `ids`, `msgspec_types`, `private` and `testing`, which
are all that a provider sees, and `text.fence`, `text.injection`, `text.scrubber`, for agents with a
prompt of their own. Everything else may change with any release.

A name is imported when it is asked for: a provider loads the small modules alone.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorybus.agent.aio import AsyncMemoryBus, AsyncSession
    from memorybus.agent.client import MemoryBus, offered_tools
    from memorybus.agent.key_history import KeyHistory
    from memorybus.agent.paced import PacedPublisher
    from memorybus.agent.session import Session
    from memorybus.agent.session_events import TurnDetails, memory_write, session_details
    from memorybus.agent.session_store import HostSessions
    from memorybus.config.settings import Settings, load
    from memorybus.events import Scope, SessionRef
    from memorybus.recall.model import RecalledItem
    from memorybus.recall.operator_recall import RecallAnswer
    from memorybus.receipt import Level, Receipt
    from memorybus.redis.keys import store_key
    from memorybus.registry.tools import OfferedTools, Tool
    from memorybus.text.cleaning import clean_text

__all__ = [
    "AsyncMemoryBus",
    "AsyncSession",
    "HostSessions",
    "KeyHistory",
    "Level",
    "MemoryBus",
    "OfferedTools",
    "PacedPublisher",
    "RecallAnswer",
    "RecalledItem",
    "Receipt",
    "Scope",
    "Session",
    "SessionRef",
    "Settings",
    "Tool",
    "TurnDetails",
    "clean_text",
    "load",
    "memory_write",
    "offered_tools",
    "session_details",
    "store_key",
]

_HOMES = MappingProxyType({
    "agent.aio": ("AsyncMemoryBus", "AsyncSession"),
    "agent.client": ("MemoryBus", "offered_tools"),
    "agent.key_history": ("KeyHistory",),
    "agent.paced": ("PacedPublisher",),
    "agent.session": ("Session",),
    "agent.session_events": ("TurnDetails", "memory_write", "session_details"),
    "agent.session_store": ("HostSessions",),
    "config.settings": ("Settings", "load"),
    "events": ("Scope", "SessionRef"),
    "recall.operator_recall": ("RecallAnswer",),
    "recall.model": ("RecalledItem",),
    "receipt": ("Level", "Receipt"),
    "redis.keys": ("store_key",),
    "registry.tools": ("Tool", "OfferedTools"),
    "text.cleaning": ("clean_text",),
})  # fmt: skip
"""The module of each name, to be read with the imports above."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
