"""What the tools do in the workspace of an owner."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from honcho import Peer
from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext
from memorybus_providers.honcho import finding, notes, places, tools
from memorybus_providers.honcho.tenant import Tenant
from memorybus_providers.remote.texts import clean_question

ToolAnswer = Mapping[str, Any]


@singledispatch
def run_tool(call: tools.HonchoCall, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    """Run a tool in a workspace, which must exist."""
    raise NotImplementedError(f"no tool takes {type(call).__name__}")


def peers_for(tenant: Tenant, peer: str) -> tuple[Peer, Peer]:
    """Return the peer that observes and the peer that it observes, for a tool's ``user|ai``."""
    return (tenant.observer, tenant.person) if peer == "user" else (tenant.agent, tenant.agent)


@run_tool.register
def _(call: tools.Profile, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    holder, about = peers_for(tenant, call.peer)
    return {"card": finding.fetch_card(holder, about)}


@run_tool.register
def _(call: tools.HonchoSearch, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    found = finding.search_messages(tenant, clean_question(call.query), call.limit)
    return {
        "results": [
            {"text": one.text, "said_by": one.speaker, "session": one.session, "at": one.at}
            for one in found
        ]
    }


@run_tool.register
def _(call: tools.Context, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    base = finding.fetch_base(*peers_for(tenant, call.peer), near=clean_question(call.query))
    return {"card": list(base.card), "representation": list(base.representation)}


@run_tool.register
def _(call: tools.Conclude, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    event = MemoryWritten(
        action="remove" if call.remove else "add",
        store="user" if call.peer == "user" else "memory",
        content="" if call.remove else call.conclusion,
        old_text=call.conclusion if call.remove else "",
    )
    changed = notes.apply_write(tenant, event, ctx)
    return {"kept": len(changed.created), "removed": len(changed.deleted)}


@run_tool.register
def _(call: tools.Card, tenant: Tenant, ctx: HookContext) -> ToolAnswer:
    tenant.place(places.NOTES)  # makes the peers, too
    holder, about = peers_for(tenant, call.peer)
    return {"card": holder.set_card(list(call.facts), target=about) or []}
