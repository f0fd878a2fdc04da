"""The scope and context of a recall, and the recollections that it returns."""

from typing import Self

import msgspec
from memorybus.events import Scope, SessionRef


class RecallScope(msgspec.Struct, frozen=True):
    """The owners whose memories may be recalled. None means everyone; only operators may ask that.

    The empty workspace is a workspace like any other: that of sessions which name none.
    """

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""

    @classmethod
    def own(cls, scope: Scope) -> Self:
        """Return what a session of a scope may recall: exactly its own."""
        return cls(scope.agent, scope.user, scope.workspace)


class RecallContext(msgspec.Struct, frozen=True):
    """What a recall gets beside the query.

    Attributes:
        scope: whose memories may be returned; nothing outside it.
        session: the asking session, or None.
        budget: characters of text that are wanted at most; the caller cuts the rest.
        deadline: seconds until the answer is of no use any more.
        explain: whether the answer shall say why each memory was found (`Recollection.why`).
        as_of: recall what was known at this time, milliseconds; None for now. What was said or
            corrected later does not count. Only set for providers with `Capabilities.as_of`.
    """

    scope: RecallScope
    session: SessionRef | None = None
    budget: int = 2_000
    deadline: float = 5.0
    explain: bool = False
    as_of: int | None = None


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a memory was found, for a person who asks.

    Attributes:
        words: the words that memory and question share, as the memory spells them.
        meaning: how near its meaning is to that of the question, -1 to 1; None if the provider
            compared words alone.
        parts: the amounts and factors of its score, in the order in which a person reads them, by
            names that explain themselves ("speaker", "newer").
    """

    words: tuple[str, ...] = ()
    meaning: float | None = None
    parts: dict[str, float] = {}


class Recollection(msgspec.Struct, frozen=True, omit_defaults=True):
    """One remembered thing, best first in a result.

    Attributes:
        text: verbatim and not escaped; cut only if `truncated` is set.
        session: the session it comes from; empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it; empty if unknown.
        score: larger is better; comparable within one provider only.
        source: where the provider found it (a file, an index); empty if unknown.
        truncated: whether the provider left something out.
        event: id of the event that brought it; empty if the provider does not know.
        until: when something newer replaced it, milliseconds; 0 if it is current, as far as the
            provider knows.
        before: in short, what it replaced; empty if it replaced nothing.
        why: why it was found; needed only if `RecallContext.explain` is set.
    """

    text: str
    session: str = ""
    at: int = 0
    speaker: str = ""
    score: float = 0.0
    source: str = ""
    truncated: bool = False
    event: str = ""
    until: int = 0
    before: str = ""
    why: Why | None = None
