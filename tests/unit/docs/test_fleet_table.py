"""The page of the fleet: what it says of each provider is what the class says."""

import re
from typing import Final

import pytest
from fleet_table import EFFECT, HOSTED, PAGE, STATE, page, row, rows
from memorybus_providers import registry
from memorybus_providers.base import Capabilities, MemoryProvider

KINDS: Final = (*registry.registered_kinds(), *HOSTED)
TEXT: Final = PAGE.read_text()


def test_the_page_is_current() -> None:
    """The generated table is that of the classes; `make docs` writes it."""
    assert page(TEXT) == TEXT


@pytest.mark.parametrize("kind", registry.registered_kinds())
def test_delivery_and_placement_are_the_classes_own(kind: str) -> None:
    """The words of a row can be read back into what the class declares (G4)."""
    provider = registry.load(kind)
    cells = next(one for one in rows() if one.startswith(f"| `{kind}` |")).split(" | ")

    assert {words: name for name, words in EFFECT.items()}[cells[1]] == provider.delivery
    assert {words: name for name, words in STATE.items()}[cells[2]] == provider.placement


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_costs_and_limits(kind: str) -> None:
    """Whoever adds a provider says what a recall costs and what an erasure leaves."""
    costs = TEXT.partition("## What each costs, and its limits")[2].partition("## Measured")[0]
    (found,) = re.findall(rf"^\| `{re.escape(kind)}` \|.*", costs, re.MULTILINE)
    assert all(cell.strip() for cell in found.strip("|").split("|"))


class Bulk(MemoryProvider):
    """Takes turns in bulk."""

    kind = "bulk"
    delivery = "keyed"
    bulk_turns = 7
    capabilities = Capabilities(concurrent=True, forgets=True)

    def sync_turns(self, batch: object) -> None:
        """Take them."""


def test_a_row_says_what_is_declared() -> None:
    """Calls at once, bulk, and a mark for each ability."""
    assert row("bulk", Bulk) == (
        "| `bulk` | once: our id is its key | any worker | several keys, 7 turns each | yes "
        "| – | – | – | yes | – | – |\n"
    )
