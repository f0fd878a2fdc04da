"""Loads a plugin as Hermes does: by name, from the person's own Hermes, or from a directory."""

import importlib
import logging
import shlex
import sys
from pathlib import Path
from typing import Any

from .failures import UNAVAILABLE, CallRefused


class Plugin:
    """One plugin of a Hermes installation.

    Args:
        name: its name in Hermes, or in the catalog from which Hermes installs plugins.
        directory: its directory, if it is none that Hermes or the person has; else "".
        home: the HERMES_HOME from which it reads.
        person: the HERMES_HOME into which the person installs plugins.
    """

    def __init__(self, name: str, directory: str, home: Path, person: Path) -> None:
        """Find the plugin, in the order in which Hermes does: bundled ones come first.

        Raises:
            ImportError: this Python has no Hermes.
            CallRefused: there is no such plugin; the message names the command that installs it.
        """
        self.name = name
        self._home = home
        self._memory = importlib.import_module("plugins.memory")
        logging.getLogger(self._memory.__name__).setLevel(logging.DEBUG)  # it says why it failed
        given = directory or self._memory.find_provider_dir(name) or person / "plugins" / name
        self.directory = Path(given)
        if not (self.directory / "__init__.py").is_file():
            raise CallRefused(UNAVAILABLE, _why_missing(name, directory, person))

    @property
    def package(self) -> str:
        """The name under which Hermes has imported the plugin; it differs between releases."""
        init = str(self.directory / "__init__.py")
        modules = list(sys.modules.items())
        return next((n for n, m in modules if getattr(m, "__file__", None) == init), self.name)

    def make(self) -> Any:
        """Return an instance, not initialised yet.

        Raises:
            CallRefused: the plugin cannot be loaded, or reports that it is not available.
        """
        made = self._memory._load_provider_from_dir(self.directory)  # noqa: SLF001
        if made is None:
            raise CallRefused(UNAVAILABLE, f"Hermes could not load the plugin {self.name!r}")
        if not made.is_available():
            raise CallRefused(UNAVAILABLE, self._why_unavailable(made))
        return made

    def _why_unavailable(self, made: Any) -> str:
        ask = getattr(made, "unavailable_reason", None)
        reason = ask() if callable(ask) else ""
        return (
            f"the plugin {self.name!r} is not available: "
            f"{reason or 'its packages, its keys or its configuration are missing'}; it reads "
            f"{self._home}: let the option hermes_home name the HERMES_HOME in "
            "which it is set up, or the option env the variables of its keys"
        )


def _why_missing(name: str, directory: str, person: Path) -> str:
    if directory:
        return f"Hermes has no memory plugin {name!r} in {directory}"
    own = Path.home() / ".hermes"
    home = "" if person == own else f"HERMES_HOME={shlex.quote(str(person))} "
    return (
        f"neither Hermes nor {person / 'plugins'} has a memory plugin {name!r}: "
        f"run `{home}hermes plugins install {name}`"
    )
