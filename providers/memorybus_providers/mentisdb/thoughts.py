"""Makes thoughts with a type, tags and relations from events; pure.

MentisDB does not accept ids or times from us, so both are tags. Our tags begin with ``mb:``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from memorybus.events import Delegated, MemoryWritten, Reason, TurnCompleted

from memorybus_providers.base import HookContext
from memorybus_providers.remote import utterances
from memorybus_providers.remote.names import name_of
from memorybus_providers.remote.texts import sendable, split_text

TAG_PREFIX: Final = "mb:"
MARK: Final = "mb:mark"
"""The tag of thoughts that are not memories, so that no recall shows them."""

GONE: Final = "mb:gone"
"""The tag of thoughts whose relations retract or replace others."""

BRANCH: Final = "mb:branch"
"""The tag of marks whose content is the name of a branch's chain."""

MAX_THOUGHT_CHARS = 400_000
"""The most characters of a thought: the server accepts bodies of 2 MB."""

_KINDS: Final[dict[Reason, str]] = {
    "branch": "BranchesFrom",
    "compression": "ContinuesFrom",
    "resume": "ContinuesFrom",
    "delegation": "DerivedFrom",
}


class Relation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edge to an earlier thought.

    Attributes:
        kind: the kind of relation, in MentisDB's words.
        target_id: the earlier thought.
        chain_key: the chain of the earlier thought, if it is another one.
    """

    kind: str
    target_id: str
    chain_key: str | None = None


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
        return next((one[len(start) :] for one in self.tags if one.startswith(start)), "")


def session_tag(session_id: str) -> str:
    """Return the tag of a session's thoughts."""
    return f"mb:session:{name_of(session_id)}"


def event_tag(event_id: str) -> str:
    """Return the tag by which an event is found."""
    return f"mb:event:{event_id}"


def place_tag(session_id: str) -> str:
    """Return the tag of the mark that says in which chain a session is kept."""
    return f"mb:place:{name_of(session_id)}"


def store_tag(store: str) -> str:
    """Return the tag of the entries of a store."""
    return f"mb:store:{store}"


def drafts_of_turn(event: TurnCompleted, ctx: HookContext) -> list[Draft]:
    """Return a turn as one thought, or as several if it is long; none if nothing was said."""
    text = utterances.join_lines(utterances.from_turn(event, person="user", agent="assistant"))
    return _drafts("Finding", text, ctx)


def drafts_of_delegation(event: Delegated, ctx: HookContext) -> list[Draft]:
    """Return what a sub-agent did."""
    return _drafts("TaskComplete", "\n".join(filter(None, (event.task, event.result))), ctx)


def drafts_of_write(event: MemoryWritten, ctx: HookContext, old: Sequence[Thought]) -> list[Draft]:
    """Return the thoughts of a write to a store, which replaces or removes the entries `old`."""
    tags = (store_tag(event.store), *([GONE] if old else []))
    if event.action == "remove":
        relations = [Relation("Invalidates", one.id) for one in old]
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
    superseded = [Relation("Supersedes", one.id) for one in old]
    return [msgspec.structs.replace(one, relations=superseded) for one in drafts]


def draft_of_lineage(reason: Reason, parent: Thought | None, chain: str, ctx: HookContext) -> Draft:
    """Return the first thought of a session, which relates it to its parent's last thought."""
    kind = _KINDS.get(reason, "RelatedTo")
    relations = [Relation(kind, parent.id, chain)] if parent else []
    text = f"Session {name_of(ctx.session.id)}: {reason}."
    tags = (*_tags(ctx), MARK)
    return Draft("Checkpoint", text, tags, role="Checkpoint", relations=relations)


def draft_of_undo(undone: Iterable[Thought], ctx: HookContext) -> Draft:
    """Return the thought that retracts others."""
    relations = [Relation("Invalidates", one.id) for one in undone]
    tags = (*_tags(ctx), MARK, GONE)
    return Draft("Correction", "Undone.", tags, role="Audit", relations=relations)


def make_mark(text: str, *tags: str) -> Draft:
    """Return a mark."""
    return Draft("Checkpoint", text, (MARK, *tags), role="Audit")


def drafts_of_tool_call(
    kind: str, text: str, ctx: HookContext, *, importance: float, tags: Sequence[str], concepts: Any
) -> list[Draft]:
    """Return a thought that a model wrote, without tags that look like ours."""
    own = [tag for tag in map(sendable, tags) if not tag.strip().lower().startswith(TAG_PREFIX)]
    drafts = _drafts(kind, text, ctx, own, importance=importance)
    return [msgspec.structs.replace(one, concepts=[*map(sendable, concepts)]) for one in drafts]


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
