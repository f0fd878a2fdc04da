"""Reads values of the Hermes in this process, without importing it.

They are private to Hermes or may move: if one cannot be read, the result is empty, and the bus
relies on what the hooks themselves pass. With ``plugins.isolation: host`` this process is Hermes's
plugin host. No agent runs there, and the working directory is the home.
"""

import importlib
import os
import sys
from pathlib import Path

from memorybus_hermes.home import environment, find_home


def is_plugin_host() -> bool:
    """Return whether this process runs plugins for a Hermes that is another process."""
    return environment().get("HERMES_PLUGIN_HOST_PROCESS") == "1"


def session_hint() -> str | None:
    """Return the session that Hermes notes for the calling thread's log lines, or "".

    Return None in a plugin host, where each call comes on a thread of its own.
    """
    if is_plugin_host():
        return None
    context = getattr(sys.modules.get("hermes_logging"), "_session_context", None)
    session_id = getattr(context, "session_id", None)
    return session_id if isinstance(session_id, str) else ""


def active_home() -> Path | None:
    """Return Hermes's home directory, or None outside of a Hermes."""
    if is_plugin_host():
        return find_home().path
    get_home = getattr(sys.modules.get("hermes_constants"), "get_hermes_home", None)
    return Path(str(get_home())) if callable(get_home) else None


def working_directory() -> str:
    """Return Hermes's working directory, by which some plugins name a conversation, or ""."""
    try:
        return "" if is_plugin_host() else os.getcwd()
    except FileNotFoundError:  # it was removed meanwhile
        return ""


def core_tools() -> frozenset[str]:
    """Return the names that Hermes reserves for its own tools; none outside of a Hermes."""
    if is_plugin_host():
        importlib.import_module("toolsets")
    tools = getattr(sys.modules.get("toolsets"), "_HERMES_CORE_TOOLS", ())
    return frozenset(name for name in tools if isinstance(name, str))
