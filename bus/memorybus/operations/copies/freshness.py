"""Whether a copy's state would be its own: in an empty place where nobody else writes (G8)."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from memorybus.operations.copies.generations import next_name
from memorybus.operations.stores import Stores
from memorybus.registry.description import InstanceDescription
from memorybus.registry.instances import Instance, InstancesView, Purpose

Tables = Mapping[str, Mapping[str, Any]]
"""The settings' tables of options, by instance."""


def owner_of(
    what: InstanceDescription, copy: Instance, sight: InstancesView, tables: Tables
) -> str:
    """Return the instance into whose state a copy would write; "" if it has its own; pure.

    Args:
        what: what the copy would be.
        copy: its record.
        sight: the others; a dropped one counts as long as its record is there.
        tables: what the settings say of each.
    """
    if what.by_home:
        return ""
    first = Instance(name=copy.provider, provider=copy.provider)
    others = [first] + [
        one
        for one in sight.all.values()
        if one.provider == copy.provider and one.is_copy and one.name != copy.name
    ]
    mine = place(what, copy, tables)
    return next((one.name for one in others if place(what, one, tables) == mine), "")


def place(what: InstanceDescription, one: Instance, tables: Tables) -> tuple[str, ...]:
    """Return where an instance's shared state is, by the options that say so; pure."""
    return _place(what, {**one.options, **tables.get(one.name, {})} if one.is_copy else {})


def _place(what: InstanceDescription, options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(options.get(option, own)) for option, own in what.place.items())


def place_text(what: InstanceDescription, one: Instance, tables: Tables) -> str:
    """Return the options that say where a state is, as the command line writes them; pure."""
    texts = zip(what.place, place(what, one, tables), strict=True)
    return ", ".join(f"{option}={text}" for option, text in texts)


def shared(copy: Instance, owner: str) -> str:
    """Return what a person reads whose copy would write into another's state."""
    return f"a copy of {copy.provider} would write where {owner} does: its state is shared"


def remedy(what: InstanceDescription, name: str) -> str:
    """Return how a copy called `name` gets a state of its own."""
    options = " or ".join(f"--set {option}=…" for option in what.place if option in what.tunable)
    if not options and what.place:
        listed = " or ".join(f"{option} = …" for option in what.place)
        options = f'[provider."{name}"] with {listed} in the memorybus.toml of its workers'
    if options:
        return f"give it a place that none of its instances has: {options}"
    return (
        "it names no option that says where; add another instance with a place or an account of "
        "its own (memorybus provider add), compare, and remove this one"
    )


def free_name(
    stores: Stores, provider: str, sight: InstancesView, purpose: Purpose = "rebuild"
) -> str:
    """Return a name for the next generation, or for a copy to compare with, that is not in use.

    A Redis that was lost knows none of the generations whose files are still there.
    """
    base, _, first = next_name(provider, sight, purpose).rpartition("@")
    names = (f"{base}@{number}" for number in count(int(first)))
    return next(name for name in names if not left_of(stores, name))


def left_of(stores: Stores, name: str) -> str:
    """Return in words what is there of an instance already; "" if nothing is.

    Of the files only those in this data directory are seen.
    """
    if name in stores.settings.providers or name in stores.roster.providers():
        return "it is a provider of its own"
    lanes = stores.lanes.count_remaining(name)
    if lanes:
        return f"Redis holds {lanes} lanes of it"
    home = stores.settings.provider_home(name)
    return f"{home} holds files" if home.is_dir() and any(home.iterdir()) else ""
