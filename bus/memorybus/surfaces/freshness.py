"""Is a copy's state its own: a place where nobody else writes, and where nothing lies yet (G8)?"""

from collections.abc import Mapping
from itertools import count
from typing import Any

from memorybus.copies import Copies
from memorybus.described import Described
from memorybus.instances import Instance, Purpose, Sight
from memorybus.surfaces.generations import next_name


def owner_of(what: Described, copy: Instance, sight: Sight) -> str:
    """Return the instance where whose state is a copy would write; "" if it has its own; pure.

    Args:
        what: what the copy would be.
        copy: its record.
        sight: the others; a dropped one counts as long as its record is there.
    """
    if what.by_home:
        return ""
    others: dict[str, Mapping[str, Any]] = {copy.provider: {}}
    for one in sight.all.values():
        if one.provider == copy.provider and one.name != copy.name:
            others[one.name] = one.options
    mine = _place(what, copy.options)
    return next((name for name, options in others.items() if _place(what, options) == mine), "")


def _place(what: Described, options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(options.get(option, own)) for option, own in what.place.items())


def told_place(what: Described, options: Mapping[str, Any]) -> str:
    """Return the options that say where a state is, as the command line has them; pure."""
    texts = zip(what.place, _place(what, options), strict=True)
    return ", ".join(f"{option}={text}" for option, text in texts)


def shared(copy: Instance, owner: str) -> str:
    """Return what a person is told whose copy would write into another's state."""
    return f"a copy of {copy.provider} would write where {owner} does: its state is shared"


def remedy(what: Described) -> str:
    """Return how a copy gets a state of its own."""
    options = " or ".join(f"--set {option}=…" for option in what.place)
    if options:
        return f"give it a place that none of its instances has: {options}"
    return (
        "it names no option that says where; add another instance with a place or an account of "
        "its own (memorybus provider add), compare, and remove this one"
    )


def free_name(desk: Copies, provider: str, sight: Sight, purpose: Purpose = "rebuild") -> str:
    """Return the name of the next generation, or of a copy to compare with: nothing is left of it.

    A Redis that was lost knows none of the generations whose files are still there.
    """
    base, _, first = next_name(provider, sight, purpose).rpartition("@")
    names = (f"{base}@{number}" for number in count(int(first)))
    return next(name for name in names if not left_of(desk, name))


def left_of(desk: Copies, name: str) -> str:
    """Return in words what is there of an instance already; "" if nothing is.

    Of the files only those in this data directory are seen.
    """
    if name in desk.settings.providers or name in desk.roster.providers():
        return "it is a provider of its own"
    lanes = desk.lanes.left(name)
    if lanes:
        return f"Redis holds {lanes} lanes of it"
    home = desk.settings.provider_home(name)
    return f"{home} holds files" if home.is_dir() and any(home.iterdir()) else ""
