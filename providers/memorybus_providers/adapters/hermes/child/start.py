"""Starts the child: ``python -I start.py FD``, with its configuration as JSON on standard input.

It makes a package of the files in its directory, since Hermes's Python may not have memorybus.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

NAME = "memorybus_hosted"


def load_package(here: Path) -> None:
    """Make the directory `here` importable as the package `NAME`."""
    spec = importlib.util.spec_from_file_location(
        NAME, here / "__init__.py", submodule_search_locations=[str(here)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{here} cannot be loaded as a package")
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    load_package(Path(__file__).parent)
    importlib.import_module(f"{NAME}.process").run(int(sys.argv[1]), sys.stdin.buffer.read())
