"""Checks that a copy would have a state of its own, empty and written by nobody else (G8)."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from memorybus.processes.reports import InstanceDescription
from memorybus.registry.instances import Instance, InstancesView, Purpose

from memorybus_console.operations.copies.generations import next_name
from memorybus_console.operations.stores import Stores

Tables = Mapping[str, Mapping[str, Any]]
"""The tables of provider options in the settings, by instance."""


def owner_of(what: InstanceDescription, copy: Instance, view: InstancesView, tables: Tables) -> str:
    """Return the instance into whose state a copy would write; "" if it has its own; pure.

    Args:
        view: all instances; a dropped one counts as long as its record exists.
    """
    if what.by_home:
        return ""
    first = Instance(name=copy.provider, provider=copy.provider)
    others = [first] + [
        instance
        for instance in view.all.values()
        if instance.provider == copy.provider and instance.is_copy and instance.name != copy.name
    ]
    mine = place_of(what, copy, tables)
    return next((other.name for other in others if place_of(what, other, tables) == mine), "")


def place_of(what: InstanceDescription, instance: Instance, tables: Tables) -> tuple[str, ...]:
    """Return the values of the options that say where an instance's shared state is; pure."""
    return _place(
        what, {**instance.options, **tables.get(instance.name, {})} if instance.is_copy else {}
    )


def _place(what: InstanceDescription, options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(options.get(option, own)) for option, own in what.place.items())


def describe_place(what: InstanceDescription, instance: Instance, tables: Tables) -> str:
    """Return the options that say where a state is, as they stand on a command line; pure."""
    texts = zip(what.place, place_of(what, instance, tables), strict=True)
    return ", ".join(f"{option}={text}" for option, text in texts)


def describe_shared_state(copy: Instance, owner: str) -> str:
    """Return the message for a copy that would write into another instance's state."""
    return f"a copy of {copy.provider} would write where {owner} does: its state is shared"


def describe_remedy(what: InstanceDescription, name: str) -> str:
    """Return, in words, how a copy called `name` gets a state of its own."""
    options = " or ".join(f"--set {option}=…" for option in what.place if option in what.tunable)
    if not options and what.place:
        listed = " or ".join(f"{option} = …" for option in what.place)
        options = f'[provider."{name}"] with {listed} in the memorybus.toml of its workers'
    if options:
        return f"give it a place that none of its instances has: {options}"
    return (
        "it names no option that says where; add another instance with a place or an account of "
        "its own (memorybus provider setup), compare, and remove this one"
    )


def find_free_name(
    stores: Stores, provider: str, view: InstancesView, purpose: Purpose = "rebuild"
) -> str:
    """Return an unused name for the next generation, or for a copy to compare with.

    Names are also searched on disk: after a loss of Redis, generations that it no longer knows
    may still have files there.
    """
    base, _, first = next_name(provider, view, purpose).rpartition("@")
    names = (f"{base}@{number}" for number in count(int(first)))
    return next(name for name in names if not describe_leftovers(stores, name))


def describe_leftovers(stores: Stores, name: str) -> str:
    """Return, in words, what already exists under an instance's name; "" if nothing does.

    On disk, only this data directory is searched.
    """
    if name in stores.settings.providers or name in stores.roster.providers():
        return "it is a provider of its own"
    lanes = stores.lanes.count_remaining(name)
    if lanes:
        return f"Redis holds {lanes} lanes of it"
    home = stores.settings.provider_home(name)
    return f"{home} holds files" if home.is_dir() and any(home.iterdir()) else ""
