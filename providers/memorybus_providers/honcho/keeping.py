"""Exports and erases an owner's workspace.

Facts of server 3.0 that this relies on: it deletes a workspace in the background (202), and refuses
while the workspace has sessions (409); deleting only the sessions leaves the cards of the peers.
"""

from collections.abc import Iterator

from honcho.conclusions import Conclusion
from honcho.message import Message

from memorybus_providers.base import StoredMemory
from memorybus_providers.honcho import finding, places
from memorybus_providers.honcho.tenant import Tenant

_PAGE = 100


def export_workspace(tenant: Tenant) -> Iterator[StoredMemory]:
    """Yield a workspace's messages by session, its conclusions, and the cards."""
    for session in sorted(tenant.honcho.sessions(size=_PAGE), key=lambda one: one.id):
        if session.id != places.NOTES:
            yield from (_message(one, tenant) for one in session.messages(size=_PAGE))
    for one in tenant.honcho.conclusions.list(size=_PAGE):
        yield _conclusion(one, tenant)
    for holder, about in ((tenant.observer, tenant.person), (tenant.agent, tenant.agent)):
        for line in finding.fetch_card(holder, about):
            yield _stored(tenant, line, "card")


def delete_workspace(tenant: Tenant) -> int:
    """Delete a workspace, its sessions first; return how many messages and conclusions it had."""
    sessions = list(tenant.honcho.sessions(size=_PAGE))
    count = sum(session.messages(size=1).total or 0 for session in sessions)
    count += tenant.honcho.conclusions.list(size=1).total or 0
    for session in sessions:
        session.delete()
    tenant.honcho.delete_workspace(tenant.honcho.workspace_id)
    return count


def _message(one: Message, tenant: Tenant) -> StoredMemory:
    found = finding.message_recollection(one, tenant)
    return _stored(
        tenant,
        found.text,
        "message",
        session=found.session,
        at=found.at,
        speaker=found.speaker,
        event=found.event,
    )


def _conclusion(one: Conclusion, tenant: Tenant) -> StoredMemory:
    at = round(one.created_at.timestamp() * 1_000)
    return _stored(tenant, one.content, "conclusion", at=at)


def _stored(
    tenant: Tenant,
    text: str,
    kind: str,
    *,
    session: str = "",
    at: int = 0,
    speaker: str = "",
    event: str = "",
) -> StoredMemory:
    owner = tenant.owner
    return StoredMemory(
        text,
        agent=owner.agent,
        user=owner.user,
        workspace=owner.workspace,
        kind=kind,
        session=session,
        at=at,
        speaker=speaker,
        event=event,
    )
