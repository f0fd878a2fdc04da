"""Agents of other frameworks on the bus, by the public names of memorybus.

Each module needs the extra of its framework: `anthropic`, `langgraph`, `openai-agents`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from memorybus.errors import install_command


@contextmanager
def naming_extra(library: str, extra: str) -> Iterator[None]:
    """Name the command that installs an extra if its library is missing."""
    try:
        yield
    except ImportError as error:
        remedy = install_command(extra)
        raise ImportError(f"{library} is missing ({error}); run: {remedy}") from error
