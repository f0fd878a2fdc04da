"""Chooses the HERMES_HOME and ``user_id`` of each owner, so that their memories are kept apart."""

import contextlib
import re
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import derived_id

from memorybus_providers.owners import Owner

NOBODY = "default"
"""The name of the person if a scope names none; Hermes passes no ``user_id`` for it."""

_PROFILE = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
_NO_PROFILES = ("default", "custom")
"""Names that Hermes uses for a HERMES_HOME without a profile."""

_MARK_DIGITS = 16
"""How many hex digits a mark has: 64 bits do not collide by chance."""


class PluginHome(msgspec.Struct, frozen=True):
    """The place of a child: a directory of the provider, and the HERMES_HOME."""

    directory: Path
    home: Path


def place_of(own: PluginHome, owner: Owner, first: Owner) -> PluginHome:
    """Return an owner's place: the instance's own place for `first`, one below it for others."""
    if owner == first:
        return own
    directory = _directory(own, owner)
    return PluginHome(directory, directory / "hermes")


def profile_of(own: PluginHome, owner: Owner, first: Owner) -> PluginHome:
    """Return the place for an owner's agent and workspace: the instance's own, or a profile's.

    A plugin takes the profile's name from the directory's name. As in Hermes, it is the agent's
    name, if that is a valid name of a profile and means nobody else here.
    """
    if is_of_own_agent(owner, first):
        return own
    everybody = msgspec.structs.replace(owner, user="")
    plain = _PROFILE.fullmatch(owner.agent) and owner.workspace == first.workspace
    taken = owner.agent in (*_NO_PROFILES, own.home.name)
    name = owner.agent if plain and not taken else f"agent-{mark_of(everybody)}"
    directory = _directory(own, everybody)
    return PluginHome(directory, directory / "profiles" / name)


def is_of_own_agent(owner: Owner, first: Owner) -> bool:
    """Say whether an owner has the agent and the workspace of the instance's own owner."""
    return (owner.agent, owner.workspace) == (first.agent, first.workspace)


def mark_of(owner: Owner) -> str:
    """Return a short name of an owner that no other owner has."""
    return derived_id(*msgspec.structs.astuple(owner))[:_MARK_DIGITS]


def _directory(own: PluginHome, owner: Owner) -> Path:
    return own.directory / "owners" / derived_id(*msgspec.structs.astuple(owner))


def plain_id(owner: Owner) -> str:
    """Return a person's name as a ``user_id``; "" for a person without a name."""
    return "" if owner.user == NOBODY else owner.user


def user_id_of(owner: Owner, first: Owner) -> str:
    """Return the ``user_id`` by which a plugin keeps an owner apart.

    For persons of the instance's own agent and workspace it is the plain name. For all others it is
    the name, a ``~`` and a digest of the owner; no plain ``user_id`` contains a ``~``.
    """
    if is_of_own_agent(owner, first) and "~" not in owner.user:
        return plain_id(owner)
    return f"{owner.user}~{derived_id(*msgspec.structs.astuple(owner))}"


def make_home(home: Path, source: Path, plugin: str) -> None:
    """Make a HERMES_HOME with links to the configuration in `source`, but not to its memories."""
    private.directory(home)
    if home == source:
        return
    for name in (".env", "config.yaml", "plugins", f"{plugin}.json", f"{plugin}/config.json"):
        if (source / name).exists():
            private.directory((home / name).parent)
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to((source / name).absolute())
