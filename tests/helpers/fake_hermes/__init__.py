"""A fake Hermes Agent: just what a hosted plugin and its loader import, with the same names.

`python_of` writes a program that stands for its Python. The real one is judged by tests/hermes.
"""

import sys
from pathlib import Path

PLUGINS = Path(__file__).parent.parent / "hermes_plugins"
"""Plugins written for these tests; the real Hermes runs them too."""

_PROGRAM = """\
#!{python}
import runpy, sys
sys.path.insert(0, {package!r})
assert sys.argv[1] == "-I"
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def python_of(directory: Path) -> Path:
    """Write the fake installation's Python and return its path."""
    program = directory / "python-of-fake-hermes"
    program.write_text(
        _PROGRAM.format(python=sys.executable, package=str(Path(__file__).parent)),
    )
    program.chmod(0o755)
    return program
