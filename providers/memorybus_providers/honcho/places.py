"""The names of workspaces, peers and sessions; pure.

Each owner (agent, person and workspace of the bus) has a workspace of Honcho, in which two peers
speak. So what Honcho derives of one owner never reaches another, and deleting the workspace deletes
all of it: Honcho cannot delete peers alone (server 3.0).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from memorybus.events import Scope

from memorybus_providers.base import RecallScope
from memorybus_providers.owners import Owner
from memorybus_providers.remote.names import name_of

NOTES: Final = "memorybus__notes"
"""The session of what agents write to their stores; no other session's name contains ``__``."""

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
    """Return the name of a session of the bus."""
    return name_of(session_id)


def owner_metadata(prefix: str, scope: Scope | Owner | RecallScope) -> dict[str, Any]:
    """Return the metadata by which workspaces are found, for the given parts of a scope."""
    parts = {f"memorybus_{part}": getattr(scope, part) for part in _PARTS}
    return {"memorybus": prefix} | {
        key: _escape(part) for key, part in parts.items() if part is not None
    }


def owner_from_metadata(metadata: Mapping[str, Any]) -> Owner:
    """Return the owner of a workspace."""
    return Owner(*(_unescape(metadata.get(f"memorybus_{part}")) for part in _PARTS))


def _escape(text: str) -> str:
    """Return an id as the server can store it: without NUL, different for different ids.

    A plain id stays as it is.
    """
    return json.dumps(text)[1:-1]


def _unescape(escaped: object) -> str:
    """Return the id that was escaped; "" for anything else."""
    try:
        return str(json.loads(f'"{escaped or ""}"'))
    except ValueError:
        return ""
