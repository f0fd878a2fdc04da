"""Loads a plugin as Hermes does, by name or from a directory."""

import importlib
import logging
from pathlib import Path
from typing import Any

from .failures import UNAVAILABLE, CallRefused


class Plugin:
    """One plugin of a Hermes installation.

    Args:
        name: the name of a bundled plugin, or of one in ``$HERMES_HOME/plugins``.
        directory: the plugin's directory, if it is another one; else "".
    """

    def __init__(self, name: str, directory: str) -> None:
        """Find the plugin.

        Raises:
            ImportError: this Python has no Hermes.
            CallRefused: there is no such plugin.
        """
        self.name = name
        self._memory = importlib.import_module("plugins.memory")
        logging.getLogger(self._memory.__name__).setLevel(logging.DEBUG)  # it says why it failed
        found = Path(directory) if directory else self._memory.find_provider_dir(name)
        if found is None or not (Path(found) / "__init__.py").is_file():
            where = f" in {directory}" if directory else ""
            raise CallRefused(UNAVAILABLE, f"Hermes has no memory plugin {name!r}{where}")
        self.directory = Path(found)

    def make(self) -> Any:
        """Return an instance, not initialised yet.

        Raises:
            CallRefused: the plugin cannot be loaded, or says that it is not available.
        """
        made = self._memory._load_provider_from_dir(self.directory)  # noqa: SLF001
        if made is None:
            raise CallRefused(UNAVAILABLE, f"Hermes could not load the plugin {self.name!r}")
        if not made.is_available():
            raise CallRefused(
                UNAVAILABLE,
                f"the plugin {self.name!r} says that it is not available: its keys or its "
                "configuration are missing in HERMES_HOME",
            )
        return made
