"""The names of workspaces, peers and sessions; pure.

Each agent, person and workspace of the bus has a workspace of Honcho's to itself, in which two
peers speak. So what Honcho derives of one owner never reaches another, and deleting the workspace
deletes all of it: peers alone cannot be deleted there (server 3.0).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from memorybus.events import Scope

from memorybus_providers.adapters.owners import Owner
from memorybus_providers.base import RecallScope
from memorybus_providers.remote.names import name_of

NOTES: Final = "memorybus__notes"
"""The session of what agents write to their stores; no other session has a ``__`` in its name."""

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


def marks(prefix: str, scope: Scope | Owner | RecallScope) -> dict[str, Any]:
    """Return the metadata by which workspaces are found: of an owner's all, else what is asked."""
    said = {f"memorybus_{part}": getattr(scope, part) for part in _PARTS}
    return {"memorybus": prefix} | {
        key: _escaped(part) for key, part in said.items() if part is not None
    }


def owner_in(metadata: Mapping[str, Any]) -> Owner:
    """Return whose workspace it is by its metadata."""
    return Owner(*(_read(metadata.get(f"memorybus_{part}")) for part in _PARTS))


def _escaped(text: str) -> str:
    """Return an id as its server can keep it: plain ones as they are, no NUL, no two the same."""
    return json.dumps(text)[1:-1]


def _read(escaped: object) -> str:
    """Return the id that was escaped, "" for what is none."""
    try:
        return str(json.loads(f'"{escaped or ""}"'))
    except ValueError:
        return ""
