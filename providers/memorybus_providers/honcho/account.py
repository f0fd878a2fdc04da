"""An open account: what the hooks ask of it, each within its deadline."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from honcho.http.exceptions import HonchoError, NotFoundError
from memorybus.events import MemoryWritten

from memorybus_providers.adapters.owners import MOST, Owner, owner_of
from memorybus_providers.base import (
    HookContext,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.honcho import calls, finding, keeping, notes, outgoing, places, tools
from memorybus_providers.honcho.dialectic import Dialectic
from memorybus_providers.honcho.options import Level, Options
from memorybus_providers.honcho.questions import AskedFile
from memorybus_providers.honcho.service import Service
from memorybus_providers.honcho.tenant import Tenant, Tenants

T = TypeVar("T")

_AT_ONCE = 3
"""Requests of recalls that are under way together at most (G10)."""

_KEPT = 512
"""Base contexts that are kept, the oldest go (G10)."""

_LONG = 3_600.0
"""Seconds that an erasure or an export may take."""

_EVERY = 1 << 31
"""Workspaces that an erasure or an export looks for: all."""


class Account:
    """Workspaces of one account. May be used from several threads."""

    def __init__(self, config: ProviderConfig, options: Options, key: str) -> None:
        """Connect to nothing yet."""
        self._options, self._clock = options, config.clock
        self._service = Service(options, key, config.clock)
        self._tenants = Tenants(self._service, options)
        asked = AskedFile(
            config.home / "asked.db", options.dialectic_per_day, config.clock, config.spend
        )
        self._dialectic = Dialectic(options, asked)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="memorybus-honcho")
        self._bases: OrderedDict[Owner, tuple[float, finding.Base]] = OrderedDict()

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._service.close()

    # -- writing ----------------------------------------------------------------------------------

    def say(self, messages: Sequence[outgoing.Said], ctx: HookContext) -> None:
        """Store the messages of an event, if there are any."""
        if messages:
            self._in(ctx, lambda at: at.say(at.place(ctx.session.id), messages, ctx.at))

    def note(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Apply a write to a store."""
        self._in(ctx, lambda tenant: notes.write(tenant, event, ctx))

    def link(self, told: dict[str, str], ctx: HookContext, *, goes_on: str = "") -> None:
        """Note what is known of the context's session; see `Tenant.link`."""
        self._in(ctx, lambda tenant: tenant.link(ctx.session.id, told, goes_on=goes_on))

    def take_back(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Mark the messages of events, which no recall shows from then on."""
        self._in(ctx, lambda tenant: tenant.take_back(tenant.place(ctx.session.id), event_ids))

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Say whether all messages of an event are stored."""
        where = (ctx.session.id, places.NOTES)
        return self._in(
            ctx, lambda tenant: any(tenant.holds(tenant.place(one), event_id) for one in where)
        )

    def _in(self, ctx: HookContext, act: Callable[[Tenant], T]) -> T:
        """Act in the workspace of a context's owner; once more if it proves to be gone."""
        owner = owner_of(ctx.scope)
        with self._service.asking(ctx.deadline):
            try:
                return self._acted(owner, act)
            except NotFoundError:
                return self._acted(owner, act)

    def _acted(self, owner: Owner, act: Callable[[Tenant], T]) -> T:
        """Act in a workspace, which is made if need be; after a failure it is looked at anew."""
        tenant = self._tenants.of(owner)
        try:
            tenant.ready()
            return act(tenant)
        except HonchoError:
            self._tenants.drop(owner)
            raise

    # -- recall -----------------------------------------------------------------------------------

    def recall(self, query: str, ctx: RecallContext) -> list[Recollection]:
        """Return what is near a question, and what the dialectic has found; else the base."""
        asked = finding.question(query)
        with self._service.asking(ctx.deadline):
            tenants = self._tenants.found(ctx.scope)
            of = self._near if asked else self._of_base
            lists = [of(tenant, asked, ctx.deadline) for tenant in tenants]
        found = sorted((one for some in lists for one in some), key=lambda one: -one.score)
        if asked and ctx.session and len(tenants) == 1:
            found += self._supplement(tenants[0], ctx.session.id, asked)
        return found

    def prompt(self, scope: RecallScope) -> str:
        """Return the base context of one agent and person as a text."""
        with self._service.asking(self._options.timeout):
            tenants = self._tenants.found(scope)
            base = self._base(tenants[0]) if len(tenants) == 1 else finding.Base()
        parts = (("The user's card", base.card), ("Of the user", base.representation))
        return "\n".join(
            f"{title}:\n" + "\n".join(f"- {line}" for line in lines)
            for title, lines in parts
            if lines
        )

    def _near(self, tenant: Tenant, asked: str, deadline: float) -> list[Recollection]:
        """Ask for all that is near a question at once: a recall takes as long as one request."""
        asks = finding.asks(tenant, asked, self._options.results)
        waiting = [self._pool.submit(self._asked, ask, deadline) for ask in asks]
        return finding.merged([one.result() for one in waiting])

    def _asked(self, ask: finding.Ask, deadline: float) -> Sequence[Recollection]:
        with self._service.asking(deadline):
            return ask()

    def _of_base(self, tenant: Tenant, _: str, deadline: float) -> list[Recollection]:
        return finding.lines_of(self._base(tenant))

    def _base(self, tenant: Tenant) -> finding.Base:
        now = self._clock.monotonic()
        until, base = self._bases.get(tenant.owner, (0.0, finding.Base()))
        if now >= until:
            base = finding.base_of(tenant.observer, tenant.person)
            self._bases[tenant.owner] = now + self._options.context_ttl, base
            while len(self._bases) > _KEPT:
                self._bases.popitem(last=False)
        return base

    # -- its model --------------------------------------------------------------------------------

    def _supplement(self, tenant: Tenant, session: str, asked: str) -> list[Recollection]:
        ask = partial(self._ask, tenant, "user")
        found = self._dialectic.supplement(tenant.owner, session, asked, ask)
        return [Recollection(found, source="dialectic")] if found else []

    def _ask(self, tenant: Tenant, peer: str, question: str, level: Level) -> str:
        holder, about = calls.asked(tenant, peer)
        seconds = self._options.dialectic_timeout
        with self._service.asking(seconds):
            found = holder.chat(question, target=about, reasoning_level=level, timeout=seconds)
        return str(found or "")

    # -- tools ------------------------------------------------------------------------------------

    def call(self, call: tools.Call, ctx: HookContext) -> Mapping[str, Any]:
        """Run a tool."""
        if isinstance(call, tools.Conclude | tools.Card):
            return self._in(ctx, lambda tenant: calls.run(call, tenant, ctx))
        with self._service.asking(ctx.deadline):
            tenants = self._tenants.found(RecallScope.own(ctx.scope))
            if not tenants:
                return {"error": "nothing is known of this user yet"}
            if not isinstance(call, tools.Reasoning):
                return calls.run(call, tenants[0], ctx)
        return self._reasoned(call, tenants[0])

    def _reasoned(self, call: tools.Reasoning, tenant: Tenant) -> Mapping[str, Any]:
        ask = partial(self._ask, tenant, call.peer)
        found = self._dialectic.answer(finding.question(call.query), call.reasoning_level, ask)
        if found is None:
            return {"error": "no more questions to Honcho's model today; use honcho_context"}
        return {"answer": found}

    # -- what is kept of somebody -----------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete the workspaces that a scope means."""
        erased = 0
        with self._service.asking(_LONG):
            for tenant in self._tenants.found(scope, _EVERY):
                erased += keeping.delete(tenant)
                self._tenants.drop(tenant.owner)
                self._dialectic.forget(tenant.owner)
                self._bases.pop(tenant.owner, None)
            left = len(self._tenants.found(scope, MOST))
        if not left:
            return Residue(erased)
        where = self._options.base_url
        return Residue(erased, (f"{where}: {left} workspaces are still being deleted there",))

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all that the workspaces hold that a scope means."""
        with self._service.asking(_LONG):
            found = self._tenants.found(scope, _EVERY)
            for tenant in sorted(found, key=lambda one: one.honcho.workspace_id):
                yield from keeping.of(tenant)

    def health(self, deadline: float) -> str:
        """Ask the server for a workspace, which shows address, key and server."""
        with self._service.asking(deadline):
            self._tenants.found(RecallScope(None, None, None), 1)
        return ""
