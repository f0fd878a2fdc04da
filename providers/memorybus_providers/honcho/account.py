"""What the hooks do with an open account of Honcho, each within its deadline."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from honcho import Peer
from honcho.conclusions import Conclusion
from honcho.http.exceptions import HonchoError, NotFoundError
from honcho.message import Message
from memorybus.events import MemoryWritten

from memorybus_providers.base import (
    HookContext,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.honcho import finding, messages, tools
from memorybus_providers.honcho.options import HonchoOptions
from memorybus_providers.honcho.service import HonchoService
from memorybus_providers.honcho.tenant import Tenant, Tenants
from memorybus_providers.owners import MAX_OWNERS, Owner, owner_of
from memorybus_providers.remote.texts import clean_question

T = TypeVar("T")

_PAGE = 100

_AT_ONCE = 3  # the most requests of recalls that run at the same time (G10)

_MAX_CONTEXTS = 512
"""The most base contexts that are remembered; the oldest are dropped first (G10)."""

_ERASE_SECONDS = 3_600.0  # seconds that an erasure or an export may take

_QUESTIONS = "questions"
"""The name under which questions to Honcho's model are counted over all hosts."""

_MAX_WORKSPACES = 1 << 31
"""The most workspaces that an erasure or an export takes: more than there can be."""


class Account:
    """The workspaces of one account. May be used from several threads."""

    def __init__(self, config: ProviderConfig, options: HonchoOptions, key: str) -> None:
        self._options, self._clock = options, config.clock
        self._service = HonchoService(options, key, config.clock)
        self._tenants = Tenants(self._service, options)
        self._spend = config.spend
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="memorybus-honcho")
        self._bases: OrderedDict[Owner, tuple[float, finding.BaseContext]] = OrderedDict()

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._service.close()

    # -- writing ----------------------------------------------------------------------------------

    def store_messages(
        self, outgoing: Sequence[messages.OutgoingMessage], ctx: HookContext
    ) -> None:
        """Store the messages of an event, if there are any."""
        if outgoing:
            self._act_in_workspace(
                ctx, lambda at: at.store_messages(at.place(ctx.session.id), outgoing, ctx.at)
            )

    def apply_store_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        self._act_in_workspace(ctx, lambda tenant: tenant.apply_write(event, ctx))

    def link_session(
        self, metadata: dict[str, str], ctx: HookContext, *, continues: str = ""
    ) -> None:
        """Store metadata of the context's session; see `Tenant.link_session`."""
        self._act_in_workspace(
            ctx,
            lambda tenant: tenant.link_session(ctx.session.id, metadata, continues=continues),
        )

    def retract_messages(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Mark the messages of events as retracted: no recall shows them from then on."""
        self._act_in_workspace(
            ctx,
            lambda tenant: tenant.retract_messages(tenant.place(ctx.session.id), event_ids),
        )

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Return whether all messages of an event are stored."""
        sessions = (ctx.session.id, messages.NOTES)
        return self._act_in_workspace(
            ctx,
            lambda tenant: any(
                tenant.holds_event(tenant.place(session), event_id) for session in sessions
            ),
        )

    def _act_in_workspace(self, ctx: HookContext, act: Callable[[Tenant], T]) -> T:
        """Call `act` with the workspace of a context's owner; repeat it if that was deleted."""
        owner = owner_of(ctx.scope)
        with self._service.requests_within(ctx.deadline):
            try:
                return self._act_once(owner, act)
            except NotFoundError:
                return self._act_once(owner, act)

    def _act_once(self, owner: Owner, act: Callable[[Tenant], T]) -> T:
        """Call `act` with an owner's workspace, which is made if it is missing.

        After a failure nothing is remembered of the workspace, so the next call asks for it again.
        """
        tenant = self._tenants.tenant_of(owner)
        try:
            tenant.ensure_exists()
            return act(tenant)
        except HonchoError:
            self._tenants.drop(owner)
            raise

    # -- recall -----------------------------------------------------------------------------------

    def recall(self, query: str, ctx: RecallContext) -> list[Recollection]:
        """Return what is near a question; without one, return the base context."""
        question = clean_question(query)
        with self._service.requests_within(ctx.deadline):
            tenants = self._tenants.find(ctx.scope)
            recall = self._recall_near if question else self._recall_base
            lists = [recall(tenant, question, ctx.deadline) for tenant in tenants]
        return sorted(
            (recollection for some in lists for recollection in some),
            key=lambda recollection: -recollection.score,
        )

    def base_text(self, scope: RecallScope) -> str:
        """Return the base context of an agent and a person as a text."""
        with self._service.requests_within(self._options.timeout):
            tenants = self._tenants.find(scope)
            base = self._base(tenants[0]) if len(tenants) == 1 else finding.BaseContext()
        parts = (("The user's card", base.card), ("Of the user", base.representation))
        return "\n".join(
            f"{title}:\n" + "\n".join(f"- {line}" for line in lines)
            for title, lines in parts
            if lines
        )

    def _recall_near(self, tenant: Tenant, question: str, deadline: float) -> list[Recollection]:
        """Send all requests of a recall at the same time, so that only the slowest one counts."""
        requests = finding.recall_requests(tenant, question, self._options.results)
        waiting = [self._pool.submit(self._run_request, request, deadline) for request in requests]
        return finding.merge_by_place([one.result() for one in waiting])

    def _run_request(
        self, request: finding.RequestRecollections, deadline: float
    ) -> Sequence[Recollection]:
        with self._service.requests_within(deadline):
            return request()

    def _recall_base(self, tenant: Tenant, _: str, deadline: float) -> list[Recollection]:
        return finding.base_recollections(self._base(tenant))

    def _base(self, tenant: Tenant) -> finding.BaseContext:
        now = self._clock.monotonic()
        until, base = self._bases.get(tenant.owner, (0.0, finding.BaseContext()))
        if now >= until:
            base = finding.fetch_base(tenant.observer, tenant.person)
            self._bases[tenant.owner] = now + self._options.context_ttl, base
            while len(self._bases) > _MAX_CONTEXTS:
                self._bases.popitem(last=False)
        return base

    # -- tools ------------------------------------------------------------------------------------

    def run_tool(self, call: tools.HonchoCall, ctx: HookContext) -> Mapping[str, Any]:
        if isinstance(call, tools.Conclude | tools.Card):
            return self._act_in_workspace(ctx, lambda tenant: run_tool(call, tenant, ctx))
        with self._service.requests_within(ctx.deadline):
            tenants = self._tenants.find(RecallScope.own(ctx.scope))
            if not tenants:
                return {"error": "nothing is known of this user yet"}
            if not isinstance(call, tools.Reasoning):
                return run_tool(call, tenants[0], ctx)
        return self._reason(call, tenants[0])

    def _reason(self, call: tools.Reasoning, tenant: Tenant) -> Mapping[str, Any]:
        """Ask Honcho's model, which takes seconds and costs money, unless today's are used up."""
        if not self._may_ask():
            return {"error": "no more questions to Honcho's model today; use honcho_context"}
        holder, about = peers_for(tenant, call.peer)
        seconds, level = self._options.dialectic_timeout, call.reasoning_level
        question = clean_question(call.query)
        with self._service.requests_within(seconds):
            answer = holder.chat(question, target=about, reasoning_level=level, timeout=seconds)
        return {"answer": str(answer or "")}

    def _may_ask(self) -> bool:
        most = self._options.dialectic_per_day
        return bool(most) and (self._spend is None or self._spend(_QUESTIONS, most))

    # -- erasure and export -----------------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete the workspaces of a scope."""
        erased = 0
        with self._service.requests_within(_ERASE_SECONDS):
            for tenant in self._tenants.find(scope, _MAX_WORKSPACES):
                erased += delete_workspace(tenant)
                self._tenants.drop(tenant.owner)
                self._bases.pop(tenant.owner, None)
            left = len(self._tenants.find(scope, MAX_OWNERS))
        if not left:
            return Residue(erased)
        where = self._options.base_url
        return Residue(erased, (f"{where}: {left} workspaces are still being deleted there",))

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all memories in the workspaces of a scope."""
        with self._service.requests_within(_ERASE_SECONDS):
            found = self._tenants.find(scope, _MAX_WORKSPACES)
            for tenant in sorted(found, key=lambda one: one.honcho.workspace_id):
                yield from export_workspace(tenant)

    def health(self, deadline: float) -> str:
        """Ask the server for a workspace, which proves that address, key and server work."""
        with self._service.requests_within(deadline):
            self._tenants.find(RecallScope(None, None, None), 1)
        return ""


def peers_for(tenant: Tenant, peer: str) -> tuple[Peer, Peer]:
    """Return the peer that observes and the peer that it observes, for a tool's ``user|ai``."""
    return (tenant.observer, tenant.person) if peer == "user" else (tenant.agent, tenant.agent)


def run_tool(
    call: tools.Profile | tools.HonchoSearch | tools.Context | tools.Conclude | tools.Card,
    tenant: Tenant,
    ctx: HookContext,
) -> Mapping[str, Any]:
    """Run a tool in a workspace, which must exist."""
    match call:
        case tools.Profile():
            return {"card": finding.fetch_card(*peers_for(tenant, call.peer))}
        case tools.HonchoSearch():
            recollections = finding.search_messages(tenant, clean_question(call.query), call.limit)
            return {
                "results": [
                    {
                        "text": recollection.text,
                        "said_by": recollection.speaker,
                        "session": recollection.session,
                        "at": recollection.at,
                    }
                    for recollection in recollections
                ]
            }
        case tools.Context():
            near = clean_question(call.query)
            base = finding.fetch_base(*peers_for(tenant, call.peer), near=near)
            return {"card": list(base.card), "representation": list(base.representation)}
        case tools.Conclude():
            event = MemoryWritten(
                action="remove" if call.remove else "add",
                store="user" if call.peer == "user" else "memory",
                content="" if call.remove else call.conclusion,
                old_text=call.conclusion if call.remove else "",
            )
            kept, removed = tenant.apply_write(event, ctx)
            return {"kept": kept, "removed": removed}
        case tools.Card():
            tenant.place(messages.NOTES)  # makes the peers, too
            holder, about = peers_for(tenant, call.peer)
            return {"card": holder.set_card(list(call.facts), target=about) or []}


def export_workspace(tenant: Tenant) -> Iterator[StoredMemory]:
    """Yield a workspace's messages by session, its conclusions, and the cards."""
    for session in sorted(tenant.honcho.sessions(size=_PAGE), key=lambda one: one.id):
        if session.id != messages.NOTES:
            yield from (_message(message, tenant) for message in session.messages(size=_PAGE))
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


def _message(message: Message, tenant: Tenant) -> StoredMemory:
    recollection = finding.message_recollection(message, tenant)
    return _stored(
        tenant,
        recollection.text,
        "message",
        session=recollection.session,
        at=recollection.at,
        speaker=recollection.speaker,
        event=recollection.event,
    )


def _conclusion(conclusion: Conclusion, tenant: Tenant) -> StoredMemory:
    at = round(conclusion.created_at.timestamp() * 1_000)
    return _stored(tenant, conclusion.content, "conclusion", at=at)


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
