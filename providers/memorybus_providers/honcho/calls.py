"""What the tools do in an owner's workspace."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from honcho import Peer
from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext
from memorybus_providers.honcho import finding, notes, places, tools
from memorybus_providers.honcho.tenant import Tenant

Answer = Mapping[str, Any]


@singledispatch
def run(call: tools.Call, tenant: Tenant, ctx: HookContext) -> Answer:
    """Run a tool in a workspace that is there."""
    raise NotImplementedError(f"no tool takes {type(call).__name__}")


def asked(tenant: Tenant, peer: str) -> tuple[Peer, Peer]:
    """Return who holds something, and of whom, if a tool asks for ``user`` or ``ai``."""
    return (tenant.observer, tenant.person) if peer == "user" else (tenant.agent, tenant.agent)


@run.register
def _(call: tools.Profile, tenant: Tenant, ctx: HookContext) -> Answer:
    holder, about = asked(tenant, call.peer)
    return {"card": finding.card_of(holder, about)}


@run.register
def _(call: tools.Search, tenant: Tenant, ctx: HookContext) -> Answer:
    found = finding.said(tenant, finding.question(call.query), call.limit)
    return {
        "results": [
            {"text": one.text, "said_by": one.speaker, "session": one.session, "at": one.at}
            for one in found
        ]
    }


@run.register
def _(call: tools.Context, tenant: Tenant, ctx: HookContext) -> Answer:
    base = finding.base_of(*asked(tenant, call.peer), near=finding.question(call.query))
    return {"card": list(base.card), "representation": list(base.representation)}


@run.register
def _(call: tools.Conclude, tenant: Tenant, ctx: HookContext) -> Answer:
    event = MemoryWritten(
        action="remove" if call.remove else "add",
        store="user" if call.peer == "user" else "memory",
        content="" if call.remove else call.conclusion,
        old_text=call.conclusion if call.remove else "",
    )
    changed = notes.write(tenant, event, ctx)
    return {"kept": len(changed.made), "removed": len(changed.gone)}


@run.register
def _(call: tools.Card, tenant: Tenant, ctx: HookContext) -> Answer:
    tenant.place(places.NOTES)  # it makes the peers, too
    holder, about = asked(tenant, call.peer)
    return {"card": holder.set_card(list(call.facts), target=about) or []}
