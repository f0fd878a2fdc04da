"""Which HERMES_HOME and ``user_id`` is whose, so that every owner's memories lie apart."""

import contextlib
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import derived_id

from memorybus_providers.adapters.owners import Owner

NOBODY = "default"
"""The person of a scope that names none; Hermes gives no ``user_id`` then."""


class Place(msgspec.Struct, frozen=True):
    """Where a child works: a directory of the provider, and the HERMES_HOME."""

    directory: Path
    home: Path


def place_of(own: Place, owner: Owner, first: Owner) -> Place:
    """Return an owner's place: the instance's own for `first`, a place below it for others."""
    if owner == first:
        return own
    directory = own.directory / "owners" / derived_id(*msgspec.structs.astuple(owner))
    return Place(directory, directory / "hermes")


def plain_id(owner: Owner) -> str:
    """Return a person's name as a ``user_id``; "" for the one that has none."""
    return "" if owner.user == NOBODY else owner.user


def user_id_of(owner: Owner, first: Owner) -> str:
    """Return the ``user_id`` by which a plugin keeps an owner apart.

    The plain one for persons of the instance's own agent and workspace; for all others the name
    and a digest of the owner after a ``~``, which no plain one contains.
    """
    at_home = (owner.agent, owner.workspace) == (first.agent, first.workspace)
    if at_home and "~" not in owner.user:
        return plain_id(owner)
    return f"{owner.user}~{derived_id(*msgspec.structs.astuple(owner))}"


def make_home(home: Path, source: Path, plugin: str) -> None:
    """Make a HERMES_HOME; what is configuration, and no memory, is linked from `source`."""
    private.directory(home)
    if home == source:
        return
    for name in (".env", "config.yaml", "plugins", f"{plugin}.json", f"{plugin}/config.json"):
        if (source / name).exists():
            private.directory((home / name).parent)
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to((source / name).absolute())
