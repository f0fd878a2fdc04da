"""Finds out what the Hermes of this Python makes of the plugin. Another Python runs it by ``-m``.

Hermes itself is asked, because which directories and entry points it reads, and what disables a
plugin, differs between releases.
"""

import logging
import sys
from importlib import import_module
from importlib.metadata import version

import msgspec

from memorybus_hermes.home import PLUGIN

_MEMORY_PLUGINS = "plugins.memory"  # the package of Hermes that finds and loads memory providers


class PluginPlace(msgspec.Struct, frozen=True):
    """Where Hermes takes the plugin from.

    Attributes:
        directory: the directory; empty if Hermes finds none.
        refusal: why Hermes does not load it, in Hermes's words; empty if it does.
    """

    directory: str
    refusal: str = ""


class PythonReport(msgspec.Struct, frozen=True):
    """What this Python can import."""

    version: str
    placement: PluginPlace | None  # where Hermes takes the plugin from; None without Hermes


class _Warnings(logging.Handler):
    """Keeps the last warning."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


def probe() -> PythonReport:
    """Return what this Python can import; `HERMES_HOME` is the home whose plugins count."""
    return PythonReport(version(PLUGIN), find_placement())


def find_placement() -> PluginPlace | None:
    """Return where Hermes takes the plugin from; None if this Python has no Hermes."""
    directory = find_directory()
    if not directory:
        return None if directory is None else PluginPlace("")
    warnings = _Warnings(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(warnings)
    try:
        provider = import_module(_MEMORY_PLUGINS).load_memory_provider(PLUGIN)
    finally:
        root.removeHandler(warnings)
    if provider is None:
        return PluginPlace(directory, warnings.last or "Hermes does not load it")
    return PluginPlace(directory, "" if provider.is_available() else provider.unavailable_reason())


def find_directory() -> str | None:
    """Return the directory in which Hermes finds the plugin, or ""; None without Hermes."""
    try:
        memory = import_module(_MEMORY_PLUGINS)
    except ImportError:
        return None
    return str(memory.find_provider_dir(PLUGIN) or "")


if __name__ == "__main__":
    sys.stdout.write("\n" + msgspec.json.encode(probe()).decode() + "\n")
