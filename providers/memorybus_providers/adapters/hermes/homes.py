"""Chooses the HERMES_HOME and ``user_id`` of each owner, so that their memories are kept apart."""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import derived_id

from memorybus_providers.owners import Owner

NOBODY = "default"
"""The name of the person if a scope names none; Hermes passes no ``user_id`` for it."""

_PROFILE = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
_NO_PROFILES = ("default", "custom")  # names that Hermes uses for a HERMES_HOME without a profile

_MARK_DIGITS = 16  # how many hex digits a mark has: 64 bits do not collide by chance


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
    """Return whether an owner has the agent and the workspace of the instance's own owner."""
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


MAX_NOTES = 4_096
"""The most notes; if there are more, the least recently used ones are deleted (G10)."""

_NOTES_PER_DELETION = 256  # how many notes are deleted at a time

Facts = Mapping[str, str]  # what is known of a session, with Hermes's names


class SessionNotes:
    """The notes: one file for each session of an owner, below the home. One thread writes them."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "sessions"

    def facts(self, owner: Owner, session_id: str) -> Facts:
        """Return the note of a session; it is empty if there is none."""
        path = self._path(owner, session_id)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
            os.utime(path)  # marks it as in use
        except (FileNotFoundError, msgspec.DecodeError):  # a crash may have cut it short
            return {}
        return found

    def keep(self, owner: Owner, session_id: str, facts: Facts) -> None:
        """Write the note of a session, unless it is the same."""
        if not facts or self.facts(owner, session_id) == facts:
            return
        private.directory(self._directory)
        path = self._path(owner, session_id)
        writing = path.with_suffix(".new")
        private.write(writing, msgspec.json.encode(facts))
        writing.replace(path)
        self._shrink()

    def carry(self, owner: Owner, before: str, session_id: str) -> None:
        """Give a session the note of the one that it continues, unless it has its own."""
        if not self.facts(owner, session_id):
            self.keep(owner, session_id, self.facts(owner, before))

    def _path(self, owner: Owner, session_id: str) -> Path:
        name = derived_id(owner.agent, owner.user, owner.workspace, session_id)
        return self._directory / f"{name}.json"

    def _shrink(self) -> None:
        notes = list(self._directory.iterdir())
        if len(notes) <= MAX_NOTES:
            return
        for path in sorted(notes, key=_used)[:_NOTES_PER_DELETION]:
            path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
