"""One account's chains: where a session is kept, what is appended, what is found."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from memorybus.events import Reason, Scope

from memorybus_providers.adapters.owners import Owner, owner_of
from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.mentisdb import chains, ledger, thoughts
from memorybus_providers.mentisdb.ledger import Ledger
from memorybus_providers.mentisdb.service import Service
from memorybus_providers.mentisdb.thoughts import Draft, Relation, Thought
from memorybus_providers.remote.names import name_of
from memorybus_providers.remote.texts import sendable

_KEPT = 4_096
"""Sessions whose chain and last thought are remembered, the least used go (G10)."""

MOST_MARKS = 1_000
"""Of a chain, the newest, that are looked at (G10)."""

MOST_CHAINS = 64
"""Of an owner, its own and branches, that one recall searches (G10)."""

_PAGE = 100


class Found(msgspec.Struct, frozen=True):
    """What ``/v1/search`` and ``/v1/thoughts/traverse`` answer."""

    thoughts: list[Thought]
    has_more: bool = False


class Score(msgspec.Struct, frozen=True):
    """How well a thought fits."""

    total: float = 0.0


class Hit(msgspec.Struct, frozen=True):
    """A thought that a ranked search found, and in which chain."""

    thought: Thought
    chain_key: str = ""
    score: Score = Score()


class Hits(msgspec.Struct, frozen=True):
    """What ``/v1/ranked-search`` and ``/v1/federated-search`` answer."""

    results: list[Hit]


class Appended(msgspec.Struct, frozen=True):
    """What ``/v1/thoughts`` answers."""

    thought: Thought


class Branched(msgspec.Struct, frozen=True):
    """What ``/v1/chains/branch`` answers."""

    branch_chain_key: str


class Listed(msgspec.Struct, frozen=True):
    """What ``/v1/chains`` answers."""

    chain_keys: list[str]


class Store:
    """The chains of a server that begin with a prefix. May be used from several threads."""

    def __init__(self, service: Service, prefix: str) -> None:
        """Know no chain yet."""
        self._service, self._prefix = service, prefix
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[Owner, str], str] = OrderedDict()
        self._last: OrderedDict[tuple[str, str], Thought] = OrderedDict()

    # -- where --------------------------------------------------------------------------------

    def chain(self, scope: Scope | Owner) -> str:
        """Return an owner's own chain."""
        owner = scope if isinstance(scope, Owner) else owner_of(scope)
        return chains.chain_of(self._prefix, owner)

    def place(self, scope: Scope, session_id: str) -> str:
        """Return the chain in which a session is kept: its owner's own, or that of a branch."""
        key = (owner_of(scope), session_id)
        found = self._places.get(key)
        if found is None:
            own = self.chain(scope)
            marks = self.search(own, [thoughts.place_tag(session_id)], MOST_MARKS)
            found = self._keep(self._places, key, marks[-1].content if marks else own)
        return found

    def listed(self, scope: RecallScope) -> list[str]:
        """Return the chains that are there and that a scope means; none is made by asking."""
        names = self._service.get("/v1/chains", Listed).chain_keys
        return sorted(name for name in names if chains.meant(name, self._prefix, scope))

    # -- writing ------------------------------------------------------------------------------

    def append(self, chain: str, drafts: Sequence[Draft], ctx: HookContext) -> None:
        """Append thoughts, each behind the session's last one.

        Of an event of several thoughts those are left out which are held already.
        """
        held = self.held(chain, ctx.event_id) if len(drafts) > 1 else []
        there = {one.tag("part") for one in held}
        for number, draft in enumerate(drafts):
            if str(number) not in there:
                self._append(chain, draft, ctx)

    def held(self, chain: str, event_id: str) -> list[Thought]:
        """Return the thoughts that an event has left in a chain."""
        return self.search(chain, [thoughts.event_tag(event_id)])

    def join(self, parent: str, reason: Reason, ctx: HookContext) -> None:
        """Note where a session comes from; a branch gets a chain of its own."""
        session, own = ctx.session.id, self.chain(ctx.scope)
        if parent in ("", session) or self.last(self.place(ctx.scope, session), session):
            return
        source = self.place(ctx.scope, parent)
        before = self.last(source, parent)
        place = own
        if reason == "branch" and before:
            place = self._branched(source, before, ctx)
        elif reason == "compression":
            place = source
        if place != own:
            self._move(place, ctx, branched=reason == "branch")
        self._append(place, thoughts.of_lineage(reason, before, source, ctx), ctx)

    def last(self, chain: str, session_id: str) -> Thought | None:
        """Return the last thought of a session in a chain."""
        key = (chain, session_id)
        found = self._last.get(key)
        if found is None:
            newest = self.search(chain, [thoughts.session_tag(session_id)], 1)
            if not newest:
                return None
            found = self._keep(self._last, key, newest[-1])
        return found

    def forget_session(self, scope: Scope, session_id: str) -> None:
        """Look at a session anew: what was sent last may not be there."""
        with self._lock:
            place = self._places.pop((owner_of(scope), session_id), None)
            self._last.pop((place or "", session_id), None)

    def mark(self, chain: str, draft: Draft) -> None:
        """Append a mark of nobody's session."""
        self._post(chain, draft, {"agent_id": "memorybus"})

    def _append(self, chain: str, draft: Draft, ctx: HookContext) -> None:
        session = ctx.session.id
        before = self.last(chain, session)
        edges = [*draft.relations, *([Relation("ContinuesFrom", before.id)] if before else [])]
        stored = self._post(
            chain,
            msgspec.structs.replace(draft, relations=edges),
            {
                "agent_id": name_of(ctx.scope.agent),
                "agent_name": sendable(ctx.scope.agent).strip() or "agent",
                "agent_owner": name_of(ctx.scope.user),
            },
        )
        self._keep(self._last, (chain, session), stored)

    def _post(self, chain: str, draft: Draft, by: dict[str, str]) -> Thought:
        body = {"chain_key": chain, **by, **msgspec.to_builtins(draft)}
        return self._service.post("/v1/thoughts", body, Appended).thought

    def _branched(self, source: str, before: Thought, ctx: HookContext) -> str:
        """Return the chain of a branched session; it is made if it is not there."""
        wanted = chains.branch_of(source, ctx.session.id)
        if wanted not in self._service.get("/v1/chains", Listed).chain_keys:
            body = {
                "source_chain_key": source,
                "branch_thought_id": before.id,
                "branch_chain_key": wanted,
            }
            self._service.post("/v1/chains/branch", body, Branched)
        return wanted

    def _move(self, place: str, ctx: HookContext, *, branched: bool) -> None:
        """Say in the owner's own chain in which one a session is kept."""
        tags = (thoughts.place_tag(ctx.session.id), *([thoughts.BRANCH] if branched else []))
        self.mark(self.chain(ctx.scope), thoughts.mark(place, *tags))
        self._keep(self._places, (owner_of(ctx.scope), ctx.session.id), place)

    def _keep(self, kept: OrderedDict[Any, Any], key: Any, value: Any) -> Any:
        with self._lock:
            kept[key] = value
            kept.move_to_end(key)
            while len(kept) > _KEPT:
                kept.popitem(last=False)
        return value

    # -- finding ------------------------------------------------------------------------------

    def search(self, chain: str, tags: Sequence[str], most: int | None = None) -> list[Thought]:
        """Return a chain's thoughts with any of some tags, the newest `most`, in order."""
        body = {"chain_key": chain, "tags_any": tags, "limit": most}
        return self._service.post("/v1/search", body, Found).thoughts

    def ledger(self, chain: str) -> Ledger:
        """Return what a chain's marks say."""
        return ledger.read(self.search(chain, ledger.TAGS, MOST_MARKS))

    def ledgers(self, chain: str) -> dict[str, Ledger]:
        """Return what the marks of an owner's chain and its branches say, by chain."""
        own = self.ledger(chain)
        branches = own.branches[-(MOST_CHAINS - 1) :]
        return {chain: own} | {name: self.ledger(name) for name in branches}

    def near(self, names: Sequence[str], text: str, most: int) -> list[Hit]:
        """Return what is near a text in some chains, best first."""
        asked: dict[str, Any] = {"text": text, "limit": most}
        if len(names) == 1:
            return self._service.post(
                "/v1/ranked-search", {**asked, "chain_key": names[0]}, Hits
            ).results
        return self._service.post(
            "/v1/federated-search", {**asked, "chain_keys": names}, Hits
        ).results

    def all(self, chain: str) -> Iterator[Thought]:
        """Yield a chain's thoughts from the first on."""
        at: int | None = None
        while True:
            body = {
                "chain_key": chain,
                "direction": "forward",
                "chunk_size": _PAGE,
                "include_anchor": at is None,
                "anchor_index": at or 0,
            }
            page = self._service.post("/v1/thoughts/traverse", body, Found)
            yield from page.thoughts
            if not (page.has_more and page.thoughts):
                return
            at = page.thoughts[-1].index
