"""Write what providers declare into their page: ``python docs/fleet_table.py [--check]``.

Each registered kind, and each contract of others that can be hosted, is a row of
``docs/fleet.md``; its cells are what its class says. The suites of ``tests/contract`` hold the
classes to it.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from memorybus_providers import registry
from memorybus_providers.adapters.ethos import EthosProvider
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.adapters.registry import RegistryProvider
from memorybus_providers.base import MemoryProvider
from pages import write_or_check

PAGE = Path(__file__).with_name("fleet.md")
MARK = re.compile(r"(<!-- declared -->\n).*?(<!-- end -->)", re.DOTALL)

HEAD = (
    "| kind | an event's effect | state | calls at once | recalls | as of | tools | undo | erase "
    "| export | digest |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
)

EFFECT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "transactional": "once: commits with the checkpoint",
        "keyed": "once: our id is its key",
        "lookup": "once: an event in doubt is looked up",
        "blind": "at least once",
    }
)
STATE: Final[Mapping[str, str]] = MappingProxyType({"local": "one host", "shared": "any worker"})

HOSTED: Final[Mapping[str, type[MemoryProvider]]] = MappingProxyType(
    {
        "hermes:": HostedHermesProvider,
        "ethos:": EthosProvider,
        "registry:": RegistryProvider,
    }
)
"""Contracts of others: their adapters declare what an instance says more exactly."""


def rows() -> Iterator[str]:
    """Yield a row for each kind.

    Raises:
        MissingProvider: a class cannot be imported; classes need none of their extras.
    """
    for kind in registry.registered_kinds():
        yield row(kind, registry.load(kind))
    for scheme, adapter in HOSTED.items():
        yield row(scheme, adapter)


def row(kind: str, provider: type[MemoryProvider]) -> str:
    """Return what a class declares."""
    can = provider.capabilities
    calls = "several keys" if can.concurrent else "one"
    if overrides(provider, "sync_turns"):
        calls += f", {provider.bulk_turns} turns each"
    able = (can.recall, can.as_of, can.tools, can.retracts, can.forgets, can.exports)
    marks = [mark(does) for does in (*able, overrides(provider, "digest"))]
    cells = (f"`{kind}`", EFFECT[provider.delivery], STATE[provider.placement], calls, *marks)
    return f"| {' | '.join(cells)} |\n"


def overrides(provider: type[MemoryProvider], hook: str) -> bool:
    """Say whether a class has a hook of its own."""
    return getattr(provider, hook) is not getattr(MemoryProvider, hook)


def mark(does: bool) -> str:
    """Return a cell for yes or no."""
    return "yes" if does else "–"


def page(text: str) -> str:
    """Return the page with the table as the classes have it now."""
    table = HEAD + "".join(rows())
    return MARK.sub(lambda found: f"{found[1]}{table}{found[2]}", text)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(PAGE.read_text())))
