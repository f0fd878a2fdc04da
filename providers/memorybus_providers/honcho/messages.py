"""Names workspaces, peers and sessions of Honcho, and makes messages from events; pure.

Each owner (an agent, a person and a workspace of the bus) has its own workspace in Honcho, in which
two peers speak. So what Honcho concludes about one owner never reaches another, and an erasure
deletes the whole workspace: Honcho cannot delete single peers (server 3.0). A message may have
25,000 characters (the server's default), and a request 100 messages.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from memorybus.events import Delegated, MemoryWritten, Scope, TurnCompleted

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.owners import Owner
from memorybus_providers.remote.texts import name_of, sendable, split_text

MAX_MESSAGE_CHARS: Final = 25_000  # the most characters of a message

MAX_MESSAGES: Final = 100  # the most messages of a request


class OutgoingMessage(msgspec.Struct, frozen=True):
    """One message that is sent to Honcho."""

    by_person: bool  # whether the person said it; if not, the agent did
    content: str  # the text; not blank
    metadata: dict[str, Any]  # ``event_id``, by which it is found again, and where it was said
    reasoned: bool = True  # whether Honcho should reason about it


def messages_of_turn(event: TurnCompleted, ctx: HookContext) -> list[OutgoingMessage]:
    """Return a turn's messages, without a prompt that the host wrote and not the person."""
    person = () if event.synthetic else tuple(_parts(event.user))
    texts = [(True, part) for part in person]
    texts += [(False, part) for part in _parts(event.assistant)]
    return _number_messages(texts, ctx)


def messages_of_delegation(event: Delegated, ctx: HookContext) -> list[OutgoingMessage]:
    """Return what a sub-agent did, as messages of the agent."""
    text = "\n".join(filter(None, (f"Delegated: {event.task}", event.result)))
    blank = not (event.task.strip() or event.result.strip())
    return [] if blank else _number_messages([(False, part) for part in _parts(text)], ctx)


def split_into_batches(messages: Sequence[OutgoingMessage]) -> list[Sequence[OutgoingMessage]]:
    """Return messages in groups that each fit into one request."""
    return [messages[at : at + MAX_MESSAGES] for at in range(0, len(messages), MAX_MESSAGES)]


def plan_changes(event: MemoryWritten, stored: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return what a write to a store still has to change.

    As in the agent's own files, a text is stored once. If no entry contains the old text, or
    several different ones do, none is deleted.

    Args:
        stored: the texts of the store's conclusions, by id.

    Returns:
        The texts of new conclusions, and the ids of those that are deleted.
    """
    wanted = list(_parts(event.content))
    old = sendable(event.old_text).strip()
    holding = {
        name: text for name, text in stored.items() if old and old in text and text not in wanted
    }
    is_clear = len(set(holding.values())) == 1
    return (
        []
        if event.action == "remove"
        else [part for part in wanted if part not in stored.values()],
        list(holding) if is_clear and event.action != "add" else [],
    )


def _parts(text: str) -> Iterator[str]:
    return split_text(sendable(text), MAX_MESSAGE_CHARS)


def _number_messages(texts: Sequence[tuple[bool, str]], ctx: HookContext) -> list[OutgoingMessage]:
    metadata = {"event_id": ctx.event_id, "session": sendable(ctx.session.id), "parts": len(texts)}
    return [
        OutgoingMessage(by_person, text, metadata | {"part": number})
        for number, (by_person, text) in enumerate(texts)
    ]


NOTES: Final = "memorybus__notes"
"""The session for writes to the agents' stores; no other session's name contains ``__``."""

_PARTS: Final = ("agent", "user", "workspace")


def workspace_of(prefix: str, owner: Owner) -> str:
    """Return the name of an owner's workspace."""
    named = (owner.workspace,) if owner.workspace else ()
    return name_of(prefix, owner.agent, owner.user, *named)


def person_of(owner: Owner) -> str:
    """Return the name of the peer that is the person."""
    return name_of("person", owner.user)


def agent_of(owner: Owner) -> str:
    """Return the name of the peer that is the agent."""
    return name_of("agent", owner.agent)


def session_of(session_id: str) -> str:
    """Return Honcho's name for a session of the bus."""
    return name_of(session_id)


def owner_metadata(prefix: str, scope: Scope | Owner | RecallScope) -> dict[str, Any]:
    """Return the metadata by which workspaces are found, for the parts that a scope names."""
    parts = {f"memorybus_{part}": getattr(scope, part) for part in _PARTS}
    return {"memorybus": prefix} | {
        key: _escape(part) for key, part in parts.items() if part is not None
    }


def owner_from_metadata(metadata: Mapping[str, Any]) -> Owner:
    """Return the owner of a workspace from its metadata."""
    return Owner(*(_unescape(metadata.get(f"memorybus_{part}")) for part in _PARTS))


def _escape(text: str) -> str:
    """Return an id without NUL, which the server cannot store; different ids stay different.

    A plain id is not changed.
    """
    return json.dumps(text)[1:-1]


def _unescape(escaped: object) -> str:
    """Return the id that `_escape` was given; "" for anything that it cannot have returned."""
    try:
        return str(json.loads(f'"{escaped or ""}"'))
    except ValueError:
        return ""
