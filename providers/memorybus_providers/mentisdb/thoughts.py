"""Makes thoughts with a type, tags and relations from events, and reads what they say; pure.

MentisDB does not accept ids or times from us, so both are tags. Our tags begin with ``mb:``. A
chain's name has four parts: prefix, agent, person and workspace, joined by ``__``, which no part
contains; the name of a branch has a fifth part, the session. So a name shows its owner.

A chain only grows. A thought that was replaced, removed or undone stays in it, and a later thought,
the mark, records that it is no longer valid.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from memorybus.events import Delegated, Derived, DerivedKind, MemoryWritten, Reason, TurnCompleted

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.owners import Owner
from memorybus_providers.remote import texts
from memorybus_providers.remote.texts import name_of, sendable, split_text

TAG_PREFIX: Final = "mb:"
MARK: Final = "mb:mark"  # the tag of thoughts that are not memories, so that no recall shows them

GONE: Final = "mb:gone"  # the tag of thoughts whose relations retract or replace others

BRANCH: Final = "mb:branch"  # the tag of marks whose content is the name of a branch's chain

_SOURCE: Final = "mb:source:"
_RETRACTED: Final = "mb:retracted:"
"""Begin the tags of a conclusion that name what it came from, and those of a mark that name the
events that it retracts.

A retraction and a conclusion from what it retracts have different order keys, and may be applied at
once by two workers. So neither looks for the other: whoever reads both knows what holds (G3).
"""

MAX_THOUGHT_CHARS = 400_000  # the most characters of a thought: the server accepts bodies of 2 MB

MOST_CHAINS: Final = 64
"""The most chains of an owner that one recall searches: its own and the newest branches (G10)."""

_KINDS: Final[dict[Reason, str]] = {
    "branch": "BranchesFrom",
    "compression": "ContinuesFrom",
    "resume": "ContinuesFrom",
    "delegation": "DerivedFrom",
}


CONCLUSIONS: Final[dict[DerivedKind, str]] = {"summary": "Summary", "fact": "FactLearned"}
"""The types of the conclusions that are kept."""


class Relation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edge to an earlier thought."""

    kind: str  # the kind of relation, in MentisDB's words
    target_id: str  # the earlier thought
    chain_key: str | None = None  # the chain of the earlier thought, if it is another one


class Draft(msgspec.Struct, frozen=True):
    """A thought before it is appended: the fields of ``POST /v1/thoughts``."""

    thought_type: str
    content: str
    tags: Sequence[str]
    role: str = "Memory"
    importance: float = 0.5
    concepts: Sequence[str] = ()
    relations: Sequence[Relation] = ()


class Thought(msgspec.Struct, frozen=True):
    """A stored thought, with the fields that are used."""

    id: str
    index: int
    content: str
    thought_type: str = ""
    agent_id: str = ""
    tags: list[str] = []
    relations: list[Relation] = []

    def tag(self, name: str) -> str:
        """Return the value of one of our tags; "" if the thought lacks it."""
        start = f"{TAG_PREFIX}{name}:"
        return next((tag[len(start) :] for tag in self.tags if tag.startswith(start)), "")

    def events(self, start: str) -> frozenset[str]:
        """Return the events that the tags with a beginning name."""
        return frozenset(tag.removeprefix(start) for tag in self.tags if tag.startswith(start))


def session_tag(session_id: str) -> str:
    """Return the tag of a session's thoughts."""
    return f"mb:session:{name_of(session_id)}"


def event_tag(event_id: str) -> str:
    """Return the tag by which an event is found."""
    return f"mb:event:{event_id}"


def place_tag(session_id: str) -> str:
    """Return the tag of the mark that says in which chain a session is kept."""
    return f"mb:place:{name_of(session_id)}"


def retracted_tag(event_id: str) -> str:
    """Return the tag of the marks that retract an event."""
    return f"{_RETRACTED}{name_of(event_id)}"


def store_tag(store: str) -> str:
    """Return the tag of the entries of a store."""
    return f"mb:store:{store}"


def drafts_of_turn(event: TurnCompleted, ctx: HookContext) -> list[Draft]:
    """Return a turn as one thought, or as several if it is long; none if nothing was said."""
    text = texts.join_lines(texts.from_turn(event, person="user", agent="assistant"))
    return _drafts("Finding", text, ctx)


def drafts_of_delegation(event: Delegated, ctx: HookContext) -> list[Draft]:
    """Return what a sub-agent did."""
    return _drafts("TaskComplete", "\n".join(filter(None, (event.task, event.result))), ctx)


def drafts_of_write(event: MemoryWritten, ctx: HookContext, old: Sequence[Thought]) -> list[Draft]:
    """Return the thoughts of a write to a store, which replaces or removes the entries `old`."""
    tags = (store_tag(event.store), *([GONE] if old else []))
    if event.action == "remove":
        relations = [Relation("Invalidates", thought.id) for thought in old]
        gone = Draft(
            "AssumptionInvalidated",
            f"Removed from {event.store}.",
            (*_tags(ctx), MARK, GONE),
            role="Audit",
            relations=relations,
        )
        return [gone] if old else []
    kind = "UserTrait" if event.store == "user" else "FactLearned"
    drafts = _drafts("Correction" if old else kind, event.content, ctx, tags, importance=0.8)
    superseded = [Relation("Supersedes", thought.id) for thought in old]
    return [msgspec.structs.replace(draft, relations=superseded) for draft in drafts]


def drafts_of_conclusion(event: Derived, ctx: HookContext, old: Sequence[Thought]) -> list[Draft]:
    """Return a conclusion, which supersedes the conclusions `old`; none if it has no text.

    It is no thought of its session, which may not have begun in the chain yet.
    """
    sources = [f"{_SOURCE}{name_of(name)}" for name in (*event.sources, ctx.event_id)]
    tags = (event_tag(ctx.event_id), f"mb:at:{ctx.at}", *sources, *([GONE] if old else []))
    superseded = [Relation("Supersedes", thought.id) for thought in old]
    return [
        Draft(
            CONCLUSIONS[event.kind],
            text,
            tags,
            role="Summary" if event.kind == "summary" else "Memory",
            relations=superseded,
        )
        for text in islice(split_text(sendable(event.text), MAX_THOUGHT_CHARS), 1)
    ]


def draft_of_lineage(reason: Reason, parent: Thought | None, chain: str, ctx: HookContext) -> Draft:
    """Return the first thought of a session, which relates it to its parent's last thought."""
    kind = _KINDS.get(reason, "RelatedTo")
    relations = [Relation(kind, parent.id, chain)] if parent else []
    text = f"Session {name_of(ctx.session.id)}: {reason}."
    tags = (*_tags(ctx), MARK)
    return Draft("Checkpoint", text, tags, role="Checkpoint", relations=relations)


def draft_of_undo(undone: Sequence[Relation], event_ids: Sequence[str], ctx: HookContext) -> Draft:
    """Return the thought that retracts others, and what is or will be concluded from events."""
    tags = (*_tags(ctx), MARK, GONE, *map(retracted_tag, event_ids))
    return Draft("Correction", "Undone.", tags, role="Audit", relations=undone)


def make_mark(text: str, *tags: str) -> Draft:
    return Draft("Checkpoint", text, (MARK, *tags), role="Audit")


def drafts_of_tool_call(
    kind: str, text: str, ctx: HookContext, *, importance: float, tags: Sequence[str], concepts: Any
) -> list[Draft]:
    """Return a thought that a model wrote, without tags that look like ours."""
    own = [tag for tag in map(sendable, tags) if not tag.strip().lower().startswith(TAG_PREFIX)]
    drafts = _drafts(kind, text, ctx, own, importance=importance)
    return [msgspec.structs.replace(draft, concepts=[*map(sendable, concepts)]) for draft in drafts]


def _drafts(
    kind: str,
    text: str,
    ctx: HookContext,
    tags: Sequence[str] = (),
    *,
    importance: float = 0.5,
) -> list[Draft]:
    parts = list(split_text(sendable(text), MAX_THOUGHT_CHARS))
    return [
        Draft(
            kind,
            part,
            (*_tags(ctx), f"mb:part:{number}", f"mb:parts:{len(parts)}", *tags),
            importance=importance,
        )
        for number, part in enumerate(parts)
    ]


def _tags(ctx: HookContext) -> tuple[str, ...]:
    return (
        event_tag(ctx.event_id),
        session_tag(ctx.session.id),
        f"mb:root:{name_of(ctx.session.root)}",
        f"mb:at:{ctx.at}",
    )


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
    """Return whether a chain has our prefix and belongs to a scope."""
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


TAGS = (GONE, BRANCH)  # a ledger is read from the thoughts with one of these tags

_TAKE_BACK = frozenset({"Invalidates", "Supersedes"})


def is_memory(thought: Thought) -> bool:
    """Return whether a thought is a memory: neither a mark nor the beginning of a branch."""
    began = any(edge.kind == "BranchesFrom" for edge in thought.relations)
    return MARK not in thought.tags and not began


class MentisLedger(msgspec.Struct, frozen=True):
    """What the marks of an owner's chains say.

    Attributes:
        gone: the ids of thoughts that were replaced, removed or retracted.
        retracted: the events from which nothing may be concluded.
    """

    gone: frozenset[str] = frozenset()
    retracted: frozenset[str] = frozenset()
    branches: tuple[str, ...] = ()  # the chains that branch from the owner's own

    def chains(self, own: str) -> list[str]:
        """Return the owner's own chain and its newest branches."""
        return [own, *self.branches[-(MOST_CHAINS - 1) :]]

    def is_current(self, thought: Thought) -> bool:
        """Return whether a thought is a memory that is still valid."""
        return thought.id not in self.gone and is_memory(thought) and self.stands(thought)

    def current_thoughts(self, thoughts: Iterable[Thought]) -> list[Thought]:
        """Return the thoughts that are still valid."""
        return [thought for thought in thoughts if self.is_current(thought)]

    def stands(self, thought: Thought) -> bool:
        """Return whether a thought lost nothing of what it was concluded from."""
        return self.retracted.isdisjoint(thought.events(_SOURCE))


def read_marks(marks: Sequence[Thought]) -> MentisLedger:
    """Return the ledger for the marks of an owner's chains."""
    gone = [mark for mark in marks if GONE in mark.tags]
    retracted = frozenset[str]().union(*(mark.events(_RETRACTED) for mark in gone))
    branches = dict.fromkeys(mark.content for mark in marks if BRANCH in mark.tags)
    ledger = MentisLedger(retracted=retracted, branches=tuple(branches))
    taken = (edge for mark in gone if ledger.stands(mark) for edge in mark.relations)
    ids = frozenset(edge.target_id for edge in taken if edge.kind in _TAKE_BACK)
    return msgspec.structs.replace(ledger, gone=ids)
