"""The owners of memories, and the file in which a provider notes those for whom it has written.

An operator may ask the bus for everyone's memories; most backends have no such question. So an
adapter notes each owner, as a line of JSON in a file of its home.
"""

import re
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.events import Scope
from memorybus.ids import derived_id
from memorybus.msgspec_types import prepared

from memorybus_providers.base import RecallScope

MAX_OWNERS = 32  # owners that one recall asks about at most, the newest (G10)

_FILE = "owners.jsonl"


class Owner(msgspec.Struct, frozen=True):
    """An agent, the person it spoke with, and the workspace, "" for none."""

    agent: str
    user: str
    workspace: str


def owner_of(scope: Scope) -> Owner:
    """Return the owner of what is remembered of a scope's events."""
    return Owner(scope.agent, scope.user, scope.workspace)


def single_owner(scope: RecallScope) -> Owner | None:
    """Return the one owner that a scope names; None if it stands for several."""
    if scope.agent is None or scope.user is None or scope.workspace is None:
        return None
    return Owner(scope.agent, scope.user, scope.workspace)


def session_key(owner: Owner) -> str:
    """Return the key of the conversation between an agent and a person in a workspace.

    It is the same in every session, safe in a file name, and different for different owners.
    """
    parts = (owner.agent, owner.user, *([owner.workspace] if owner.workspace else []))
    return "@".join(map(folder_of, parts))


class Owners:
    """The file of owners, which one thread writes."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE
        self._noted: set[Owner] | None = None

    def note(self, owner: Owner) -> None:
        """Remember an owner; a new owner costs one append."""
        if self._noted is None:
            self._noted = set(self._read())
        if owner in self._noted:
            return
        with open(
            self._path, "ab", opener=private.opener
        ) as file:  # a line broken by a crash stays alone
            file.write(b"\n" + msgspec.json.encode(owner))
        self._noted.add(owner)

    def owners_in(self, scope: RecallScope) -> list[Owner]:
        """Return the owners in a recall's scope, newest first, at most `MAX_OWNERS`."""
        if owner := single_owner(scope):
            return [owner]
        owners = [owner for owner in self._read() if _is_in_scope(owner, scope)]
        return owners[: -MAX_OWNERS - 1 : -1]

    def _read(self) -> list[Owner]:
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [owner for line in lines if line for owner in _decode(line)]


def _is_in_scope(owner: Owner, scope: RecallScope) -> bool:
    asked = ((scope.agent, owner.agent), (scope.user, owner.user))
    return all(one in (None, its) for one, its in (*asked, (scope.workspace, owner.workspace)))


def _decode(line: bytes) -> list[Owner]:
    try:
        return [msgspec.json.decode(line, type=prepared(Owner))]
    except msgspec.DecodeError:
        return []


_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE_CHARS = 40


def folder_of(owner: str) -> str:
    """Return the directory name of an agent or a user: safe, and different for different ids."""
    if _PLAIN.fullmatch(owner) and not _RESERVED.fullmatch(owner):
        return owner
    readable = _UNSAFE.sub("-", owner.lower())[:_READABLE_CHARS].strip("-")
    return f"{readable}~{derived_id('folder', owner)}"
