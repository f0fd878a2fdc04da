"""The memory provider as Hermes finds it; the name of this folder is the provider's in Hermes.

Hermes loads it by the entry point of the installed package, or from `$HERMES_HOME/plugins`, where
`memorybus hermes install` puts a copy. All code is in the package `memorybus`. If the Python that
runs Hermes cannot import it, this logs an error: Hermes itself would switch memory off silently.
"""

import logging
import sys
from typing import Any


class _Unusable:
    """A memory provider that is not available, and reports why."""

    name = "memorybus"
    why = ""

    def is_available(self) -> bool:
        return False

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        raise RuntimeError(self.why)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def unavailable_reason(self) -> str:
        return self.why

    def get_status_config(self, provider_config: Any) -> dict[str, str]:
        return {"not available": self.why}


def register(ctx: Any) -> None:
    why = _why_not()
    if why:
        logging.getLogger("memorybus").error("%s", why)
        ctx.register_memory_provider(_unusable(why))
        return
    from memorybus_hermes.plugin import register as register_provider

    register_provider(ctx)


def _why_not() -> str:
    """Return why the package cannot be used, or ""."""
    try:
        import memorybus_hermes.plugin  # noqa: F401  it may be missing or damaged
    except Exception as error:
        return (
            f"memorybus: no memory in this session: {type(error).__name__}: {error}. Install "
            f"memorybus again into {sys.executable}"
        )
    return ""


def _unusable(why: str) -> Any:
    from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found,unused-ignore]

    return type("Unusable", (_Unusable, MemoryProvider), {"why": why})()
