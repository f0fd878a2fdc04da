"""Reads values of the Hermes in this process, without importing it.

They are private to Hermes or may move: if one cannot be read, the result is empty, and the bus
relies on what the hooks themselves pass.
"""

import os
import sys
from pathlib import Path


def session_hint() -> str:
    """Return the session that Hermes notes for the calling thread's log lines, or ""."""
    context = getattr(sys.modules.get("hermes_logging"), "_session_context", None)
    found = getattr(context, "session_id", None)
    return found if isinstance(found, str) else ""


def active_home() -> Path | None:
    """Return Hermes's home directory, or None outside of a Hermes."""
    found = getattr(sys.modules.get("hermes_constants"), "get_hermes_home", None)
    return Path(str(found())) if callable(found) else None


def working_directory() -> str:
    """Return the working directory, by which some plugins name a conversation, or ""."""
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed meanwhile
        return ""


def core_tools() -> frozenset[str]:
    """Return the names that Hermes reserves for its own tools; none outside of a Hermes."""
    found = getattr(sys.modules.get("toolsets"), "_HERMES_CORE_TOOLS", ())
    return frozenset(name for name in found if isinstance(name, str))
