"""Makes requests to the child from events, with arguments as Hermes passes them; pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)

from memorybus_providers.adapters.hermes.child.frames import CWD, OWNER_KEY
from memorybus_providers.base import HookContext

Args = dict[str, Any]

_FIXED_NAMES: Final = frozenset(
    {
        *("self", "cls", "session_id", "hermes_home", "user_id", "parent_session_id", OWNER_KEY),
        *("agent_identity", "agent_workspace", "warning_callback", "status_callback"),
    }
)
"""Names that an event must not set: the session's owner and place, and values that are not text."""

_REASONS: Mapping[str, str] = {"reset": "new_session", "rewind": "", "start": ""}
"""Hermes's names of reasons for a session switch, if they differ from ours."""


def hook_request(name: str, args: Args, session: Args) -> Args:
    return {"op": "hook", "hook": name, "args": args, "session": session}


def session_facts(event: SessionStarted) -> dict[str, str]:
    """Return the facts about a session in an event, with Hermes's names."""
    values = {
        **{name: value for name, value in event.details.items() if _is_allowed(name)},
        "platform": event.platform,
        "agent_context": event.agent_context,
        "session_title": event.title,
    }
    return {name: value for name, value in values.items() if value}


def _is_allowed(name: str) -> bool:
    return name.isidentifier() and name not in _FIXED_NAMES


def session_args(
    scope: Scope, session_id: str, home: Path, user_id: str, known: Mapping[str, str]
) -> Args:
    """Return the arguments of ``initialize``, without empty values, as in Hermes.

    Args:
        scope: the owner and platform of the session.
        user_id: the id by which the plugin knows the person; "" for none.
        known: the facts that were stored at the session's beginning (`session_facts`).
    """
    values = {
        "platform": scope.platform or "cli",
        "agent_context": "primary",
        **{name: value for name, value in known.items() if name != CWD},
        "session_id": session_id,
        "hermes_home": str(home),
        "agent_identity": scope.agent,
        "agent_workspace": scope.workspace or "hermes",
        "user_id": user_id,
    }
    return {name: value for name, value in values.items() if value}


def turn_args(event: TurnCompleted, ctx: HookContext) -> Args:
    """Return the arguments of ``sync_turn``; without messages, the two texts replace them."""
    spoken = [
        {"role": "user", "content": event.user},
        {"role": "assistant", "content": event.assistant},
    ]
    return {
        "user": event.user,
        "assistant": event.assistant,
        "session_id": ctx.session.id,
        "messages": list(event.messages) or spoken,
    }


def turn_start_args(event: TurnStarted) -> Args:
    """Return the arguments of ``on_turn_start``, with the details that are known."""
    values = {
        "model": event.model,
        "platform": event.platform,
        "remaining_tokens": event.remaining_tokens,
        "tool_count": event.tool_count,
    }
    details = {name: value for name, value in values.items() if value not in ("", -1)}
    return {"number": event.number, "message": event.message, "details": details}


def memory_write_args(event: MemoryWritten, ctx: HookContext) -> Args:
    """Return the arguments of ``on_memory_write``."""
    metadata = {"session_id": ctx.session.id, "platform": ctx.scope.platform, **event.provenance}
    metadata |= {"old_text": event.old_text} if event.old_text else {}
    return {
        "action": event.action,
        "target": event.store,
        "content": event.content,
        "metadata": metadata,
    }


def switch_args(event: SessionSwitched) -> Args:
    """Return the arguments of ``on_session_switch``."""
    return {
        "new_id": event.new_id,
        "parent": event.parent,
        "reset": event.reset,
        "rewound": event.rewound,
        "reason": _REASONS.get(event.reason, event.reason),
    }


def compress_args(event: ContextCompressing) -> Args:
    """Return the arguments of ``on_pre_compress``."""
    return {"messages": list(event.messages)}


def delegation_args(event: Delegated) -> Args:
    """Return the arguments of ``on_delegation``, with the details that are known."""
    tokens = {"tokens_in": event.tokens_in, "tokens_out": event.tokens_out}
    details: Args = {name: value for name, value in tokens.items() if value}
    details |= {"model": event.model} if event.model else {}
    details |= {"tool_count": event.tool_count} if event.tool_count >= 0 else {}
    return {
        "task": event.task,
        "result": event.result,
        "child_session": event.child_session,
        "details": details,
    }


def session_end_args(event: SessionEnded) -> Args:
    """Return the arguments of ``on_session_end``."""
    return {"messages": list(event.messages)}
