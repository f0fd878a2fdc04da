"""Finds the Python of a Hermes installation: the configured one, our own, or that of ``hermes``."""

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Final

from memorybus_providers.errors import MissingProvider

_HERMES_MODULE: Final = "hermes_constants"
"""A module that only Hermes has; it can be found without an import."""

_ADVICE: Final = (
    "set hermes_python to the Python of a Hermes installation "
    "(the first line of the `hermes` command names it)"
)


def find_python(given: str) -> Path:
    """Return the Python that can import Hermes.

    Raises:
        MissingProvider: no such Python is found; the message names the remedy.
    """
    if given:
        return _require_file(Path(given).expanduser())
    if importlib.util.find_spec(_HERMES_MODULE) is not None:
        return Path(sys.executable)
    command = shutil.which("hermes")
    found = shebang(Path(command)) if command else None
    if found is None:
        raise MissingProvider(f"no Hermes installation is found: {_ADVICE}")
    return _require_file(found)


def shebang(script: Path) -> Path | None:
    """Return the path of the Python that a script's first line names; None if it names none."""
    with script.open("rb") as file:
        first = file.readline(1_024).decode(errors="replace").strip()
    if not first.startswith("#!"):
        return None
    program = Path(first[2:].strip().split(" ")[0])
    return program if "python" in program.name else None


def _require_file(python: Path) -> Path:
    if not python.is_file():
        raise MissingProvider(f"{python} is not there: {_ADVICE}")
    return python
