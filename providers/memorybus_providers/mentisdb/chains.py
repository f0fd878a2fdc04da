"""Makes and reads the names of chains; pure.

A chain's name has four parts: prefix, agent, person and workspace. They are joined by ``__``, which
no part contains. The name of a branch has a fifth part, the session. So a name shows its owner.
"""

from memorybus_providers.base import RecallScope
from memorybus_providers.owners import Owner
from memorybus_providers.remote.names import name_of

_GLUE = "__"
_OWN_PARTS = 4


def chain_of(prefix: str, owner: Owner) -> str:
    """Return the name of an owner's chain."""
    return _GLUE.join(
        (prefix, name_of(owner.agent), name_of(owner.user), _workspace(owner.workspace))
    )


def branch_of(chain: str, session_id: str) -> str:
    """Return the name of the chain of a branched session, from any chain of its owner."""
    own = _GLUE.join(chain.split(_GLUE)[:_OWN_PARTS])
    return f"{own}{_GLUE}b-{name_of(session_id)}"


def owners_chain(name: str) -> str:
    """Return the name of the owner's own chain, from that chain or one of its branches."""
    return _GLUE.join(name.split(_GLUE)[:_OWN_PARTS])


def is_in_scope(name: str, prefix: str, scope: RecallScope) -> bool:
    """Say whether a chain has our prefix and belongs to a scope."""
    parts = name.split(_GLUE)
    if len(parts) < _OWN_PARTS or parts[0] != prefix:
        return False
    wanted = (
        None if scope.agent is None else name_of(scope.agent),
        None if scope.user is None else name_of(scope.user),
        None if scope.workspace is None else _workspace(scope.workspace),
    )
    return all(part in (None, its) for part, its in zip(wanted, parts[1:4], strict=True))


def _workspace(workspace: str) -> str:
    return f"w-{name_of(workspace)}" if workspace else "w"
