"""What a recall is asked with, and what it answers."""

from typing import Self

import msgspec
from memorybus.events import Scope, SessionRef


class RecallScope(msgspec.Struct, frozen=True):
    """Whose memories may be recalled. None means everyone's: only an operator may ask that.

    An empty workspace is one like any other, that of sessions which name none. It stands for
    nobody else's.
    """

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""

    @classmethod
    def own(cls, scope: Scope) -> Self:
        """Return what a session of a scope may recall: exactly its own."""
        return cls(scope.agent, scope.user, scope.workspace)


class RecallContext(msgspec.Struct, frozen=True):
    """What a recall is told beside the query.

    Attributes:
        scope: whose memories; nothing outside it may be returned.
        session: the asking session, or None.
        budget: characters of text wanted at most; more is cut by the caller.
        deadline: seconds until the answer is of no use.
        explain: whether somebody wants to know why each memory was found (`Recollection.why`).
        as_of: what was known then is asked for, milliseconds; None for now. What was said or put
            right later does not count. Only asked of `Capabilities.as_of`.
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
        words: the words of the memory that the question asked for, as the memory spells them.
        meaning: how near its meaning is to that of the question, -1 to 1; None if the provider
            compared words alone.
        parts: what its score is made of, in the order in which a person reads it: amounts that were
            added, and factors, by names that explain themselves ("speaker", "newer").
    """

    words: tuple[str, ...] = ()
    meaning: float | None = None
    parts: dict[str, float] = {}


class Recollection(msgspec.Struct, frozen=True, omit_defaults=True):
    """One remembered thing, best first in a result.

    Attributes:
        text: verbatim, neither escaped nor cut.
        session: where it comes from, empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it, empty if unknown.
        score: larger is better; comparable within one provider only.
        source: where the provider has it from (a file, an index), empty if it does not say.
        truncated: whether the provider says that it left something out.
        event: id of the event that brought it, empty if the provider does not know.
        until: when something newer took its place, milliseconds; 0 if it holds, for all that the
            provider knows.
        before: what was so before it, in short; empty if it took nothing's place.
        why: why it was found; wanted only where `RecallContext.explain` is set.
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
