"""Names the workspaces, peers and sessions; pure.

Each owner (an agent, a person and a workspace of the bus) has its own workspace in Honcho, in which
two peers speak. So what Honcho concludes about one owner never reaches another, and an erasure
deletes the whole workspace: Honcho cannot delete single peers (server 3.0).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from memorybus.events import Scope

from memorybus_providers.base import RecallScope
from memorybus_providers.owners import Owner
from memorybus_providers.remote.names import name_of

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
