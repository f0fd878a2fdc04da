"""Makes memories of Mem0 from events, with their ids and metadata; pure.

An event is a run of Mem0 (``run_id``). So the memories of an event are found and deleted by an id;
the server lists by ids only. Agent and person become Mem0's ``agent_id`` and ``user_id``, with a
prefix; the workspace is metadata.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from memorybus.events import Delegated, MemoryWritten, Scope, TurnCompleted

from memorybus_providers.base import HookContext, RecallScope, Recollection, StoredMemory
from memorybus_providers.remote import texts
from memorybus_providers.remote.texts import name_of, parse_milliseconds, sendable

Messages = list[dict[str, str]]
Filters = Mapping[str, Any]

STORES = frozenset({"memory", "user"})
"""The kinds of memories that are entries of the agent's own stores."""


class Mem0Memory(msgspec.Struct, frozen=True):
    """A memory as Mem0 returns it."""

    id: str
    memory: str = ""
    metadata: dict[str, Any] | None = None
    score: float | None = None
    created_at: str | None = None

    def metadata_value(self, name: str) -> str:
        """Return a value of our metadata; "" if there is none."""
        return str((self.metadata or {}).get(name, ""))

    @property
    def at(self) -> int:
        """When it was said, milliseconds; 0 if unknown."""
        return parse_milliseconds(self.metadata_value("at"))


class OwnerIds(msgspec.Struct, frozen=True):
    """The ids of Mem0 for an agent and a person."""

    agent_id: str
    user_id: str


def owner_ids(prefix: str, scope: Scope) -> OwnerIds:
    """Return the ids of a scope's agent and person."""
    return OwnerIds(_id(prefix, scope.agent), _id(prefix, scope.user))


def ids_of(prefix: str, scope: RecallScope) -> dict[str, str]:
    """Return the ids of a scope's agent and person, as far as the scope names them."""
    given = {"agent_id": scope.agent, "user_id": scope.user}
    return {name: _id(prefix, one) for name, one in given.items() if one is not None}


def filters_of(prefix: str, scope: RecallScope) -> dict[str, str]:
    """Return filters that match only the memories of a scope; Mem0 needs at least one id."""
    found = {"origin": prefix, **(ids_of(prefix, scope) or {"user_id": "*"})}
    if scope.workspace is not None:
        found["workspace"] = name_of(scope.workspace)
    return found


def messages_of_turn(event: TurnCompleted) -> Messages:
    """Return what was said in a turn."""
    return list(map(_message, texts.from_turn(event)))


def messages_of_delegation(event: Delegated) -> Messages:
    """Return what a sub-agent was asked and answered."""
    return list(map(_message, texts.from_delegation(event)))


def messages_of_entry(event: MemoryWritten) -> Messages:
    """Return the new text of a write to a store."""
    text = sendable(event.content)
    return [{"role": "user", "content": text}] if text.strip() else []


def join_messages(messages: Messages) -> Messages:
    """Return messages joined into one: with ``infer`` off each would become a row."""
    return [{"role": "user", "content": "\n".join(_line(message) for message in messages)}]


def metadata_of(prefix: str, kind: str, ctx: HookContext) -> dict[str, str]:
    """Return the metadata that says what a memory is and where it comes from."""
    scope, session = ctx.scope, ctx.session
    raw = {"of_agent": scope.agent, "of_user": scope.user, "of_workspace": scope.workspace}
    ids = {"session": session.id, "root": session.root, **raw}
    return {
        "origin": prefix,
        "kind": kind,
        "event": ctx.event_id,
        "at": str(ctx.at),
        "workspace": name_of(scope.workspace),
        **{name: sendable(value) for name, value in ids.items()},
    }


def to_recollection(row: Mem0Memory) -> Recollection:
    """Return a memory as the result of a recall."""
    return Recollection(
        text=row.memory,
        session=row.metadata_value("session"),
        at=row.at,
        score=float(row.score or 0.0),
        source=row.metadata_value("kind"),
        event=row.metadata_value("event"),
    )


def to_stored_memory(row: Mem0Memory) -> StoredMemory:
    """Return a memory for an export."""
    return StoredMemory(
        text=row.memory,
        agent=row.metadata_value("of_agent"),
        user=row.metadata_value("of_user"),
        workspace=row.metadata_value("of_workspace"),
        kind=row.metadata_value("kind"),
        session=row.metadata_value("session"),
        at=row.at,
        event=row.metadata_value("event"),
    )


def _id(prefix: str, one: str) -> str:
    return f"{prefix}__{name_of(one)}"


def _message(utterance: texts.RemoteUtterance) -> dict[str, str]:
    role = "user" if utterance.by_person else "assistant"
    return {"role": role, "name": utterance.who, "content": utterance.text}


def _line(message: Mapping[str, str]) -> str:
    name = message.get("name", "")
    return f"{name}: {message['content']}" if name else message["content"]
