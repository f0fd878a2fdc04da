"""The server's REST API, and the chains on it: finds a session's chain, appends, and searches."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
from memorybus.clock import Clock
from memorybus.events import Reason, Scope

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.mentisdb import thoughts
from memorybus_providers.mentisdb.options import MentisOptions
from memorybus_providers.mentisdb.thoughts import Draft, MentisLedger, Relation, Thought
from memorybus_providers.owners import Owner, owner_of
from memorybus_providers.remote.http import HttpService, SharedDeadline
from memorybus_providers.remote.texts import name_of, sendable

_MAX_SESSIONS = 4_096
"""The most sessions whose chain and last thought are remembered; the oldest are dropped (G10)."""

MOST_MARKS = 1_000  # the most marks of a chain that are read, the newest (G10)

_PAGE = 100


T = TypeVar("T")


class ThoughtPage(msgspec.Struct, frozen=True):
    """The answer of ``/v1/search`` and ``/v1/thoughts/traverse``."""

    thoughts: list[Thought]
    has_more: bool = False


class Score(msgspec.Struct, frozen=True):
    """How well a thought matches a search."""

    total: float = 0.0


class SearchHit(msgspec.Struct, frozen=True):
    """A thought that a ranked search found, and its chain."""

    thought: Thought
    chain_key: str = ""
    score: Score = Score()


class SearchHits(msgspec.Struct, frozen=True):
    """The answer of ``/v1/ranked-search`` and ``/v1/federated-search``."""

    results: list[SearchHit]


class AppendAnswer(msgspec.Struct, frozen=True):
    """The answer of ``/v1/thoughts``."""

    thought: Thought


class BranchAnswer(msgspec.Struct, frozen=True):
    """The answer of ``/v1/chains/branch``."""

    branch_chain_key: str


class ChainList(msgspec.Struct, frozen=True):
    """The answer of ``/v1/chains``."""

    chain_keys: list[str]


class MentisStore(HttpService):
    """The chains of a server whose names begin with a prefix. May be used from several threads."""

    name = "MentisDB"

    def __init__(self, options: MentisOptions, key: str, clock: Clock) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(options.base_url, headers, key, clock)
        self._prefix, self._timeout = options.prefix, options.timeout
        self._deadline = SharedDeadline(clock)
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[Owner, str], str] = OrderedDict()
        self._last: OrderedDict[tuple[str, str], Thought] = OrderedDict()

    def within(self, deadline: float) -> AbstractContextManager[None]:
        """Let the requests of the block share a deadline, in seconds."""
        return self._deadline.within(deadline)

    def error_detail(self, answer: bytes) -> str:
        """Return the body of a refusal: a line of text, or an object with ``error``."""
        return answer.decode("utf-8", "replace")

    def _send(self, kind: type[T], method: str, path: str, body: Any = None) -> T:
        seconds = min(self._timeout, self._deadline.seconds_left())
        return self.request_json(kind, method, path, seconds, body)

    # -- names of chains ----------------------------------------------------------------------

    def chain(self, scope: Scope | Owner) -> str:
        """Return the name of an owner's own chain."""
        owner = scope if isinstance(scope, Owner) else owner_of(scope)
        return thoughts.chain_of(self._prefix, owner)

    def place(self, scope: Scope, session_id: str) -> str:
        """Return the chain in which a session is kept: its owner's own chain, or a branch."""
        key = (owner_of(scope), session_id)
        found = self._places.get(key)
        if found is None:
            own = self.chain(scope)
            marks = self.search(own, [thoughts.place_tag(session_id)], MOST_MARKS)
            found = self._remember(self._places, key, marks[-1].content if marks else own)
        return found

    def list_chains(self, scope: RecallScope) -> list[str]:
        """Return the existing chains of a scope; this makes no chain."""
        names = self._send(ChainList, "GET", "/v1/chains").chain_keys
        return sorted(name for name in names if thoughts.is_in_scope(name, self._prefix, scope))

    # -- writing ------------------------------------------------------------------------------

    def append(self, chain: str, drafts: Sequence[Draft], ctx: HookContext) -> None:
        """Append thoughts, each linked to the one before it in the session.

        If an event has several thoughts, those that are stored already are left out.
        """
        stored = self.thoughts_of_event(chain, ctx.event_id) if len(drafts) > 1 else []
        there = {thought.tag("part") for thought in stored}
        for number, draft in enumerate(drafts):
            if str(number) not in there:
                self._append(chain, draft, ctx)

    def thoughts_of_event(self, chain: str, event_id: str) -> list[Thought]:
        """Return the thoughts of a chain that came from an event."""
        return self.search(chain, [thoughts.event_tag(event_id)])

    def join(self, parent: str, reason: Reason, ctx: HookContext) -> None:
        """Record from which session a session came; a branch gets its own chain."""
        session, own = ctx.session.id, self.chain(ctx.scope)
        if parent in ("", session) or self.last_thought(self.place(ctx.scope, session), session):
            return
        source = self.place(ctx.scope, parent)
        before = self.last_thought(source, parent)
        place = own
        if reason == "branch" and before:
            place = self._ensure_branch(source, before, ctx)
        elif reason == "compression":
            place = source
        if place != own:
            self._mark_place(place, ctx, branched=reason == "branch")
        self._append(place, thoughts.draft_of_lineage(reason, before, source, ctx), ctx)

    def last_thought(self, chain: str, session_id: str) -> Thought | None:
        key = (chain, session_id)
        thought = self._last.get(key)
        if thought is None:
            newest = self.search(chain, [thoughts.session_tag(session_id)], 1)
            if not newest:
                return None
            thought = self._remember(self._last, key, newest[-1])
        return thought

    def forget_session(self, scope: Scope, session_id: str) -> None:
        """Forget what is remembered of a session: its last thought may not have been stored."""
        with self._lock:
            place = self._places.pop((owner_of(scope), session_id), None)
            self._last.pop((place or "", session_id), None)

    def append_alone(self, chain: str, draft: Draft) -> None:
        """Append a mark or a conclusion, which is no thought of a session."""
        self._post(chain, draft, {"agent_id": "memorybus"})

    def _append(self, chain: str, draft: Draft, ctx: HookContext) -> None:
        session = ctx.session.id
        before = self.last_thought(chain, session)
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
        self._remember(self._last, (chain, session), stored)

    def _post(self, chain: str, draft: Draft, by: dict[str, str]) -> Thought:
        body = {"chain_key": chain, **by, **msgspec.to_builtins(draft)}
        return self._send(AppendAnswer, "POST", "/v1/thoughts", body).thought

    def _ensure_branch(self, source: str, before: Thought, ctx: HookContext) -> str:
        """Return the chain of a branched session; it is made if it is missing."""
        wanted = thoughts.branch_of(source, ctx.session.id)
        if wanted not in self._send(ChainList, "GET", "/v1/chains").chain_keys:
            body = {
                "source_chain_key": source,
                "branch_thought_id": before.id,
                "branch_chain_key": wanted,
            }
            self._send(BranchAnswer, "POST", "/v1/chains/branch", body)
        return wanted

    def _mark_place(self, place: str, ctx: HookContext, *, branched: bool) -> None:
        """Record in the owner's own chain that a session is kept in the chain `place`."""
        tags = (thoughts.place_tag(ctx.session.id), *([thoughts.BRANCH] if branched else []))
        self.append_alone(self.chain(ctx.scope), thoughts.make_mark(place, *tags))
        self._remember(self._places, (owner_of(ctx.scope), ctx.session.id), place)

    def _remember(self, kept: OrderedDict[Any, Any], key: Any, value: Any) -> Any:
        with self._lock:
            kept[key] = value
            kept.move_to_end(key)
            while len(kept) > _MAX_SESSIONS:
                kept.popitem(last=False)
        return value

    # -- finding ------------------------------------------------------------------------------

    def search(self, chain: str, tags: Sequence[str], most: int | None = None) -> list[Thought]:
        """Return a chain's thoughts with any of the tags, the newest `most`, the oldest first."""
        if not tags:
            return []
        body = {"chain_key": chain, "tags_any": tags, "limit": most}
        return self._send(ThoughtPage, "POST", "/v1/search", body).thoughts

    def ledger(self, own: str, *, whole: bool = True) -> MentisLedger:
        """Return what the marks of an owner's chain say; if `whole`, also its newest branches'."""
        marks = self.search(own, thoughts.TAGS, MOST_MARKS)
        for branch in thoughts.read_marks(marks).chains(own)[1:] if whole else ():
            marks += self.search(branch, thoughts.TAGS, MOST_MARKS)
        return thoughts.read_marks(marks)

    def search_near(self, names: Sequence[str], text: str, most: int) -> list[SearchHit]:
        """Return the thoughts near a text in these chains, best first."""
        body: dict[str, Any] = {"text": text, "limit": most}
        if len(names) == 1:
            return self._send(
                SearchHits, "POST", "/v1/ranked-search", {**body, "chain_key": names[0]}
            ).results
        return self._send(
            SearchHits, "POST", "/v1/federated-search", {**body, "chain_keys": names}
        ).results

    def all_thoughts(self, chain: str) -> Iterator[Thought]:
        """Yield a chain's thoughts, the oldest first."""
        at: int | None = None
        while True:
            body = {
                "chain_key": chain,
                "direction": "forward",
                "chunk_size": _PAGE,
                "include_anchor": at is None,
                "anchor_index": at or 0,
            }
            page = self._send(ThoughtPage, "POST", "/v1/thoughts/traverse", body)
            yield from page.thoughts
            if not (page.has_more and page.thoughts):
                return
            at = page.thoughts[-1].index
