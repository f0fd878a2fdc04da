"""Entries of the hash of copies that nobody believes: who can write to Redis may have made them."""

from collections.abc import Collection, Sequence

from memorybus.registry.instances import Sight

_NAMED, _SHOWN = 3, 60
"""Entries that are named where they are told, and characters of each."""


def ignored(sight: Sight, configured: Collection[str]) -> tuple[str, ...]:
    """Return the names of entries that are no copy's; pure, and hostile text.

    One that is called as an instance of the settings is none either: no command makes it, and it
    would write where its namesake does.
    """
    taken = (name for name, one in sight.all.items() if one.is_copy and name in configured)
    return (*sight.ignored, *taken)


def listed(names: Sequence[str]) -> str:
    """Return how the first of them are called, in one line of plain characters; pure."""
    shown = ", ".join(ascii(name[:_SHOWN]) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"entries that are no copy's are ignored: {shown}{more}"
