"""The page that compares providers has what their classes declare."""

import re
from pathlib import Path
from typing import Final

import pytest
from memorybus_providers import registry
from memorybus_providers.adapters.ethos import EthosProvider
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.adapters.registry import RegistryProvider
from memorybus_providers.base import MemoryProvider

PAGE: Final = (Path(__file__).parents[3] / "docs/providers/README.md").read_text()
ROW: Final = re.compile(r"^\| \[?`([a-z0-9:-]+)`(?:\]\([^)]*\))? \| (.*) \|$", re.MULTILINE)
HOSTED: Final[dict[str, type[MemoryProvider]]] = {
    "hermes:": HostedHermesProvider,
    "ethos:": EthosProvider,
    "registry:": RegistryProvider,
}
KINDS: Final = (*registry.registered_kinds(), *HOSTED)


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells behind the kind, of each row of a table."""
    return {kind: cells.split(" | ") for kind, cells in ROW.findall(table)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_what_its_class_declares(kind):
    """Delivery, state, calls at once and abilities are those of the class (G4)."""
    provider = HOSTED.get(kind) or registry.load(kind)
    can = provider.capabilities
    digests = provider.digest is not MemoryProvider.digest
    abilities = (can.retracts, can.forgets, can.exports, digests)
    marks = ["yes" if able else "–" for able in abilities]
    calls = "several" if can.concurrent else "one"
    declared = rows(PAGE.partition("| kind | a recall is")[0])

    assert declared[kind] == [provider.delivery, provider.placement, calls, *marks]


def test_every_kind_has_its_costs_and_no_other_is_named():
    """Whoever adds a provider states what a recall costs and what an erasure leaves."""
    costs = rows(PAGE.partition("| kind | a recall is")[2])

    assert sorted(costs) == sorted(KINDS)
    assert all(len(cells) == 3 for cells in costs.values())
