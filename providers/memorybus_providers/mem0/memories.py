"""What an event becomes in Mem0: messages, ids and metadata; pure.

An event is a run of Mem0's (``run_id``): so what came from it is found, and taken back, by an id,
with the library as with the server, which lists by ids alone. Agent and person are Mem0's, with a
prefix; the workspace is metadata.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from memorybus.events import Delegated, MemoryWritten, Scope, TurnCompleted

from memorybus_providers.base import HookContext, RecallScope, Recollection, StoredMemory
from memorybus_providers.remote import utterances
from memorybus_providers.remote.names import name_of
from memorybus_providers.remote.texts import parse_milliseconds, sendable

Messages = list[dict[str, str]]
Filters = Mapping[str, Any]

STORES = frozenset({"memory", "user"})
"""Kinds of memories that are entries of the agent's own stores."""


class Row(msgspec.Struct, frozen=True):
    """A memory as Mem0 has it."""

    id: str
    memory: str = ""
    metadata: dict[str, Any] | None = None
    score: float | None = None
    created_at: str | None = None

    def told(self, name: str) -> str:
        """Return what our metadata says; "" if nothing."""
        return str((self.metadata or {}).get(name, ""))

    @property
    def at(self) -> int:
        """When it was said, milliseconds; 0 if unknown."""
        return parse_milliseconds(self.told("at"))


class Owner(msgspec.Struct, frozen=True):
    """Whose memories, by Mem0's ids."""

    agent_id: str
    user_id: str


def owner_of(prefix: str, scope: Scope) -> Owner:
    """Return the ids of a scope's agent and person."""
    return Owner(_id(prefix, scope.agent), _id(prefix, scope.user))


def ids_of(prefix: str, scope: RecallScope) -> dict[str, str]:
    """Return the ids of those parts of a scope that are given, but the workspace."""
    given = {"agent_id": scope.agent, "user_id": scope.user}
    return {name: _id(prefix, one) for name, one in given.items() if one is not None}


def filters_of(prefix: str, scope: RecallScope) -> dict[str, str]:
    """Return what all memories of a scope have, and no other's. Mem0 wants one id at least."""
    found = {"origin": prefix, **(ids_of(prefix, scope) or {"user_id": "*"})}
    if scope.workspace is not None:
        found["workspace"] = name_of(scope.workspace)
    return found


def turn(event: TurnCompleted) -> Messages:
    """Return what was said in a turn."""
    return list(map(_message, utterances.from_turn(event)))


def delegation(event: Delegated) -> Messages:
    """Return what a sub-agent was asked and answered."""
    return list(map(_message, utterances.from_delegation(event)))


def entry(event: MemoryWritten) -> Messages:
    """Return what is written to a store."""
    text = sendable(event.content)
    return [{"role": "user", "content": text}] if text.strip() else []


def together(messages: Messages) -> Messages:
    """Return one message with all of them: with ``infer`` off each would be a row of its own."""
    return [{"role": "user", "content": "\n".join(_line(one) for one in messages)}]


def metadata_of(prefix: str, kind: str, ctx: HookContext) -> dict[str, str]:
    """Return what a memory is and where it comes from."""
    scope, session = ctx.scope, ctx.session
    raw = {"of_agent": scope.agent, "of_user": scope.user, "of_workspace": scope.workspace}
    told = {"session": session.id, "root": session.root, **raw}
    return {
        "origin": prefix,
        "kind": kind,
        "event": ctx.event_id,
        "at": str(ctx.at),
        "workspace": name_of(scope.workspace),
        **{name: sendable(value) for name, value in told.items()},
    }


def recollected(row: Row) -> Recollection:
    """Return a memory as a recall's result."""
    return Recollection(
        text=row.memory,
        session=row.told("session"),
        at=row.at,
        score=float(row.score or 0.0),
        source=row.told("kind"),
        event=row.told("event"),
    )


def stored(row: Row) -> StoredMemory:
    """Return a memory for an export."""
    return StoredMemory(
        text=row.memory,
        agent=row.told("of_agent"),
        user=row.told("of_user"),
        workspace=row.told("of_workspace"),
        kind=row.told("kind"),
        session=row.told("session"),
        at=row.at,
        event=row.told("event"),
    )


def _id(prefix: str, one: str) -> str:
    return f"{prefix}__{name_of(one)}"


def _message(one: utterances.Utterance) -> dict[str, str]:
    role = "user" if one.by_person else "assistant"
    return {"role": role, "name": one.who, "content": one.text}


def _line(message: Mapping[str, str]) -> str:
    name = message.get("name", "")
    return f"{name}: {message['content']}" if name else message["content"]
